package etcd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/apps/etcd"
)

func TestDoubts(t *testing.T) {
	unlisted := serving(1).World
	unlisted.Listed = false
	leaving := serving(3).with("e-2", down(0)).World
	leaving.Leaving = true
	cases := map[string]struct {
		reason string
		seen   etcd.World
		want   []string
	}{
		"Clear":   {"everybody answers", serving(3).World, nil},
		"Silent":  {"who does not answer may be anything", serving(3).with("e-2", down(0)).World, []string{"The state of e-2: it does not answer."}},
		"List":    {"the list may be old", unlisted, []string{"The member list in etcd: no member with a quorum answers. The list is derived from Kubernetes."}},
		"None":    {"of a cluster that is not there nothing is in doubt", etcd.World{}, nil},
		"Leaving": {"who goes is not asked", leaving, nil},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, etcd.Planner{}.Unknowns(c.seen)); diff != "" {
			t.Errorf("%s: %s: %s", name, c.reason, diff)
		}
	}
}
