package lifecycle

import "strings"

// ImageTag returns the tag of the image; empty if it has none. A colon before the last slash belongs
// to the registry's port, and one behind @ to a digest.
func ImageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}
