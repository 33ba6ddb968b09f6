package podset

import (
	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Abilities returns what the planner can do beyond planning.
func Abilities() lifecycle.Abilities[*appv1.PodSet, World] {
	p := Planner{}
	return lifecycle.Abilities[*appv1.PodSet, World]{IsPaused: (*appv1.PodSet).IsPaused, Impact: p.Impact, Images: p.Images}
}
