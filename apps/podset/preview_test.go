package podset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/apps/podset"
	"github.com/governor-dev/governor/lifecycle/preview"
)

func TestPreview(t *testing.T) {
	cases := map[string]struct {
		replicas int32
		seen     string
		want     []string
	}{
		"Create":          {3, "", []string{"CreatePods web", "PodsReady web"}},
		"Scale":           {500, "r", []string{"CreatePods web", "PodsReady web"}},
		"DeletePods":      {0, "rrr", []string{"DeletePods web"}},
		"ReplaceOutdated": {2, "oo", []string{"ReplaceOutdated web", "CreatePods web", "PodsReady web", "ReplaceOutdated web", "CreatePods web", "PodsReady web"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := preview.Simulator[*appv1.PodSet, podset.World]{Planner: podset.Planner{}, Gates: podset.Gates(), Impact: podset.Planner{}.Impact}
			plan, _, _ := s.Unroll(set(c.replicas), world(c.seen), now)
			var got []string
			for _, step := range plan.Steps {
				got = append(got, step.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" || !plan.Settles() {
				t.Errorf("the outcome is %s: %s", plan.Outcome, diff)
			}
			if renew := strings.HasPrefix(name, "ReplaceOutdated"); renew && plan.Steps[0].Impact != "1 pod of 1 are available" {
				t.Errorf("the impact is %s", plan.Steps[0].Impact)
			}
		})
	}
}
