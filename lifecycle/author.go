package lifecycle

import "strconv"

// AuthorOf is the user who made the object's present generation, as the API server recorded it; empty if that is not known. A
// change through the scale subresource and a deletion make a generation that has no record.
func AuthorOf(obj Object) string {
	notes := obj.GetAnnotations()
	if notes[AnnotationAuthorGeneration] != strconv.FormatInt(obj.GetGeneration(), 10) {
		return ""
	}
	return notes[AnnotationAuthor]
}
