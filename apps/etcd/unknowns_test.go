package etcd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/governor-dev/governor/apps/etcd"
)

func TestUnknowns(t *testing.T) {
	unlisted := serving(1).World
	unlisted.Listed = false
	cases := map[string]struct {
		reason string
		seen   etcd.World
		want   []string
	}{
		"Clear":   {"every member answers", serving(3).World, nil},
		"Silent":  {"the state of a silent member is unknown", serving(3).with("e-2", down(0)).World, []string{"The state of e-2: it does not answer."}},
		"List":    {"the list may be old", unlisted, []string{"The member list in etcd: no member with a quorum answers. The list is derived from Kubernetes."}},
		"None":    {"a cluster that does not exist has no unknowns", etcd.World{}, nil},
		"Leaving": {"a cluster that is being deleted is not queried", serving(3).with("e-2", down(0)).World, nil},
	}
	for name, c := range cases {
		want := wanted(3)
		if name == "Leaving" {
			want = deleted(want)
		}
		if diff := cmp.Diff(c.want, etcd.Planner{}.Unknowns(want, c.seen)); diff != "" {
			t.Errorf("%s: %s: %s", name, c.reason, diff)
		}
	}
}
