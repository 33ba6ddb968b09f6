package memcached

import (
	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Abilities returns what the planner can do beyond planning.
func Abilities() lifecycle.Abilities[*cachev1.Memcached, World] {
	p := Planner{}
	return lifecycle.Abilities[*cachev1.Memcached, World]{IsPaused: (*cachev1.Memcached).IsPaused, Warnings: p.Warnings, Images: p.Images}
}
