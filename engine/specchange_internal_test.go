package engine

import (
	"testing"

	"github.com/governor-dev/governor/kube/revision"
)

// An object without a settled revision is new only if none of its revisions is missing.
func TestOriginWithoutSettledRevision(t *testing.T) {
	revisions := func(from, to int64, settled ...int64) (all []revision.Revision) {
		for n := from; n <= to; n++ {
			all = append(all, revision.Revision{Number: n})
		}
		for _, n := range settled {
			all[n-from].Settled = true
		}
		return all
	}
	cases := map[string]struct {
		reason string
		all    []revision.Revision
		want   origin
	}{
		"None":     {"no spec was accepted yet", nil, fromNew},
		"New":      {"the first specs do not settle", revisions(1, revision.Limit), fromNew},
		"Returned": {"the present spec is the one that settled last", revisions(5, 14, 6), fromNew},
		"Deleted":  {"a revision that is missing may have settled", revisions(2, revision.Limit+1), fromChange},
		"ByHand":   {"a user deleted the revision that settled", revisions(2, 3), fromChange},
	}
	for name, c := range cases {
		if got := originWithoutSettled(c.all); got != c.want {
			t.Errorf("%s: %s: origin %d, want %d", name, c.reason, got, c.want)
		}
	}
}
