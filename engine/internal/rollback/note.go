package rollback

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

// annotationRolledBack is written with the spec that is put back, in one write, so
// that no crash can part them.
const annotationRolledBack = "governor.dev/rolled-back"

// Note is the note about a spec that was put back. It is about the object only as
// long as that has this spec.
type Note struct {
	// Failed and To are the revisions, FailedSpec and Spec their digests.
	Failed     int64  `json:"failed"`
	FailedSpec string `json:"failedSpec"`
	To         int64  `json:"to"`
	Spec       string `json:"spec"`
	// Reason is how the failure showed.
	Reason string `json:"reason"`
	// Kept says which fields have another value than in revision To, and why.
	Kept []string `json:"kept,omitempty"`
}

// except names the fields that a rollback kept; empty if it kept none.
func (n Note) except() string {
	if len(n.Kept) == 0 {
		return ""
	}
	return ", except that " + strings.Join(n.Kept, " and ")
}

// maxNote exceeds what a rollback writes. A condition's reason has at most maxReason characters.
const maxNote, maxReason = 8 << 10, 1024

// reasonPattern is that of the reasons of conditions (metav1.Condition).
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// NoteOf returns the note of the object, if it has one. Users can write the annotation: with a note that no rollback
// writes, the API server would refuse the status.
func NoteOf(obj lifecycle.Object) (n Note, ok bool) {
	raw := obj.GetAnnotations()[annotationRolledBack]
	if len(raw) > maxNote || json.Unmarshal([]byte(raw), &n) != nil || len(n.Reason) > maxReason || !reasonPattern.MatchString(n.Reason) {
		return Note{}, false
	}
	return n, true
}

// Condition is the condition while the spec is one that was put back.
func Condition(obj lifecycle.Resource) []lifecycle.Condition {
	n, ok := NoteOf(obj)
	if !ok {
		return nil
	}
	if _, digest, err := revision.SpecOf(obj); err != nil || digest != n.Spec {
		return nil
	}
	return []lifecycle.Condition{{
		Type: lifecycle.ConditionRolledBack, Status: metav1.ConditionTrue, Reason: n.Reason,
		Message: fmt.Sprintf("Revision %d has failed (%s), and the spec is that of revision %d again%s. "+
			"Declare another; the failed one, declared again, is tried once more and not rolled back. "+
			"If a server-side apply then conflicts with "+Manager+", repeat it once with --force-conflicts.", n.Failed, n.Reason, n.To, n.except()),
	}}
}
