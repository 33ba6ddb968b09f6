package experiment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

var everything = append(append(chaos.Generate(
	chaos.Pod, chaos.PersistentVolumeClaim, chaos.StatefulSet, chaos.Deployment, chaos.Service, chaos.EndpointSlice,
	chaos.ConfigMap, chaos.Secret, chaos.PodDisruptionBudget, chaos.NetworkPolicy, chaos.ControllerRevision, chaos.Lease,
), chaos.Pods()...), chaos.Machines()...)

// The promise of the package: whatever is asked for, nothing that destroys a copy is done.
func TestNothingThatDestroysACopyIsPermitted(t *testing.T) {
	kept, volatile := serving("etcd/e").state, serving("etcd/e").state
	volatile.Pods = append(volatile.Pods, experiment.Pod{Name: "3", Ready: true, Volatile: true})
	for _, m := range everything {
		if m.DestroysCopy(false) && kept.Objection(m) == "" {
			t.Errorf("%s is permitted, and destroys a copy", m.Name)
		}
		if m.DestroysCopy(true) && volatile.Objection(m) == "" {
			t.Errorf("%s is permitted, and destroys a copy where a pod has no volume", m.Name)
		}
		if (!m.Safe || m.All) && kept.Objection(m) == "" {
			t.Errorf("%s is permitted, and is not in the safe subset", m.Name)
		}
	}
}

func TestObjections(t *testing.T) {
	cases := map[string]struct {
		manipulation string
		change       func(*experiment.State)
		want         string
	}{
		"PodWithAVolume":   {"pod-evict", func(*experiment.State) {}, ""},
		"PodWithoutVolume": {"pod-evict", func(s *experiment.State) { s.Pods[2].Volatile = true }, "it may destroy a copy of the data"},
		"NoBudgetLeft":     {"pod-isolate", func(s *experiment.State) { s.MinReady = 3 }, "permits no pod to be away"},
		"OnlyPod":          {"pod-evict", func(s *experiment.State) { s.Budget, s.Pods = false, s.Pods[:1] }, "no other pod serves meanwhile"},
		"TwoPods":          {"pod-evict", func(s *experiment.State) { s.Budget, s.Pods = false, s.Pods[:2] }, ""},
		"DriftIsKept":      {"configmap-edit-empty", func(s *experiment.State) { s.KeepsDrift = true }, "a policy leaves as they are"},
		"DriftIsRepaired":  {"configmap-edit-empty", func(s *experiment.State) { s.MinReady = 3 }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serving("etcd/e").state
			c.change(&s)
			m, ok := everything.Named(c.manipulation)
			if got := s.Objection(m); !ok || (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLimitsNameTheFlag(t *testing.T) {
	cases := map[string]func(*experiment.Limits){
		"":                                    func(*experiment.Limits) {},
		"--budget is 0: it must be from 1 to": func(l *experiment.Limits) { l.Budget = 0 },
		"--budget is -3":                      func(l *experiment.Limits) { l.Budget = -3 },
		"--budget is 1001":                    func(l *experiment.Limits) { l.Budget = 1001 },
		"--at-once is 0":                      func(l *experiment.Limits) { l.AtOnce = 0 },
		"--for is 0s: it must be from 1s to 168h": func(l *experiment.Limits) { l.For = span(0) },
		"--for is -1m0s":                     func(l *experiment.Limits) { l.For = span(-time.Minute) },
		"--for is 240h0m0s":                  func(l *experiment.Limits) { l.For = span(240 * time.Hour) },
		"--pause is -1s: it must be from 0s": func(l *experiment.Limits) { l.Pause = span(-time.Second) },
		"--heal-within is 0s":                func(l *experiment.Limits) { l.HealWithin = span(0) },
		"--lasting is 1ms":                   func(l *experiment.Limits) { l.Lasting = span(time.Millisecond) },
	}
	for want, spoil := range cases {
		l := limits()
		spoil(&l)
		err := l.Validate()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
