package experiment

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits are what a user declares before anything is done.
type Limits struct {
	// Budget is how many manipulations are done.
	Budget int `json:"budget"`
	// AtOnce is how many instances are under a manipulation at the same time.
	AtOnce int `json:"atOnce"`
	// For is how long a manipulation may begin.
	For metav1.Duration `json:"for"`
	// Pause is the time between the end of a manipulation and the next.
	Pause metav1.Duration `json:"pause"`
	// HealWithin is how long an instance may take to heal.
	HealWithin metav1.Duration `json:"healWithin"`
	// Lasting is for how long a manipulation lasts that must be undone.
	Lasting metav1.Duration `json:"lasting"`
}

// What limits may be.
const (
	maxBudget = 1000
	maxAtOnce = 10
	longest   = 7 * 24 * time.Hour
)

// Validate returns an error that names the first flag whose value is not allowed.
func (l Limits) Validate() error {
	for _, n := range []struct {
		flag       string
		value, max int
	}{{"budget", l.Budget, maxBudget}, {"at-once", l.AtOnce, maxAtOnce}} {
		if n.value < 1 || n.value > n.max {
			return fmt.Errorf("--%s is %d: it must be from 1 to %d", n.flag, n.value, n.max)
		}
	}
	for _, d := range []struct {
		flag       string
		value, min time.Duration
	}{
		{"for", l.For.Duration, time.Second}, {"pause", l.Pause.Duration, 0},
		{"heal-within", l.HealWithin.Duration, time.Second}, {"lasting", l.Lasting.Duration, time.Second},
	} {
		if d.value < d.min || d.value > longest {
			return fmt.Errorf("--%s is %s: it must be from %s to %s, such as 2m", d.flag, d.value, d.min, longest)
		}
	}
	return nil
}
