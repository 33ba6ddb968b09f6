package webhookcert

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestReadinessWaitsForTheCertificateButNotForLong(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	k := &Keeper{serving: NewServing(), options: Options{Clock: clock}, began: noon}
	if k.Ready(nil) == nil {
		t.Error("calls would be sent to a replica that cannot answer them")
	}
	clock.Step(grace + time.Second)
	if err := k.Ready(nil); err != nil {
		t.Errorf("the operator's work does not need the webhook: %v", err)
	}
	clock.SetTime(noon)
	if err := k.serving.Load(made(t, noon)); err != nil || k.Ready(nil) != nil {
		t.Errorf("with a certificate it is ready: %v", err)
	}
}

func TestEachThingIsSaidOnce(t *testing.T) {
	var lines []string
	h := newHerald(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	away, denied := errors.New("away"), errors.New("denied")
	for _, err := range []error{nil, away, away, denied, denied, nil, nil, away} {
		h.tell(matter{"secret", noAdvice}, err)
		h.tell(matter{"other", noConversion}, denied)
	}
	var got []string
	for _, line := range lines {
		got = append(got, line[strings.LastIndex(line, "=")+1:])
	}
	want := []string{`"denied"`, `"away"`, `"denied"`, `"secret"`, `"away"`} // the fourth: in order again
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
