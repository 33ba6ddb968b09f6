package certificate

import (
	"testing"
	"time"

	"github.com/governor-dev/governor/kube/pki"
)

func TestRotationDecide(t *testing.T) {
	current := &lifetime{begin: noon, end: noon.Add(90 * time.Hour)}
	next := &lifetime{begin: noon.Add(60 * time.Hour), end: noon.Add(150 * time.Hour)}
	early, due := noon.Add(59*time.Hour), noon.Add(60*time.Hour)
	cases := map[string]struct {
		state  rotation
		now    time.Time
		action Action
		reason string
	}{
		"a good certificate is kept":                    {rotation{current: current}, early, ActionKeep, ""},
		"the next is prepared when it is due":           {rotation{current: current}, due, ActionPrepare, ReasonNearEnd},
		"a revoked one is followed now":                 {rotation{current: current, revoked: true}, early, ActionPrepare, ReasonRevoked},
		"the next waits until it has settled":           {rotation{current: current, next: next}, due, ActionKeep, ""},
		"also if the current one is revoked":            {rotation{current: current, next: next, revoked: true}, due, ActionKeep, ""},
		"a settled next one is promoted":                {rotation{current: current, next: next, settled: true}, due, ActionPromote, ReasonSettled},
		"a revocation is the reason of its promotion":   {rotation{current: current, next: next, settled: true, revoked: true}, due, ActionPromote, ReasonRevoked},
		"an unusable one is replaced":                   {rotation{fault: ReasonMissing}, early, ActionReplace, ReasonMissing},
		"an unusable one is followed by a prepared one": {rotation{fault: ReasonUnreadable, next: next}, early, ActionPromote, ReasonUnreadable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if action, reason := c.state.decide(c.now); action != c.action || reason != c.reason {
				t.Errorf("got %s %q, want %s %q", action, reason, c.action, c.reason)
			}
		})
	}
}

func TestRotationNextStep(t *testing.T) {
	current := &lifetime{begin: noon, end: noon.Add(90 * time.Hour)}
	next := &lifetime{begin: noon.Add(60 * time.Hour), end: noon.Add(150 * time.Hour)}
	cases := map[string]struct {
		state rotation
		want  time.Time
	}{
		"the certificate is due":  {rotation{current: current}, noon.Add(60 * time.Hour)},
		"the next one settles":    {rotation{current: current, next: next}, next.begin.Add(pki.Skew + time.Minute)},
		"nothing happens by time": {rotation{fault: ReasonMissing}, time.Time{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.state.nextStep(time.Minute); !got.Equal(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
