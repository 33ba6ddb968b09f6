// Package contract says what any pod set does under the planner's rules. The same suite
// runs on the in-memory model and on a real API server, so the model cannot lie.
package contract

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Set is the name of the set that the suite is about.
const Set = "web"

// System is a namespace with a pod set, real or not, under an operator. Its pods become
// ready by themselves.
type System interface {
	// Apply makes the set what the edit makes of it.
	Apply(t *testing.T, edit func(*appv1.PodSetSpec))

	// Settles waits until the object tells the outcome and reason, and returns it. It
	// fails the test if that does not come.
	Settles(t *testing.T, outcome lifecycle.Outcome, reason string) *appv1.PodSet

	// Tells is the object as it is now.
	Tells(t *testing.T) *appv1.PodSet

	// Until lets time pass until it holds. It fails the test if that does not come.
	Until(t *testing.T, what string, holds func() error)

	// Owners says of every pod of the namespace that is not being deleted whether the
	// set controls it.
	Owners(t *testing.T) map[string]bool

	// Put makes a pod without a controller, with the set's labels or without any.
	Put(t *testing.T, name string, matching bool)

	// Hand gives the pod the labels of another set, Strip takes its labels away.
	Hand(t *testing.T, name string)
	Strip(t *testing.T, name string)

	// End lets the pod end for good. Lose makes it vanish at once.
	End(t *testing.T, name string)
	Lose(t *testing.T, name string)
}

// Run runs the suite; each test gets a system of its own.
func Run(t *testing.T, fresh func(t *testing.T) System) {
	t.Helper()
	suite := map[string]func(*testing.T, System){
		"ScalesToAnySize": scales, "ReplacesWhatIsLost": replacesLost, "ReplacesWhatEnded": replacesEnded,
		"AdoptsWhatMatches": adopts, "DeletesWhatItAdoptedToo": adoptsTooMany,
		"LetsGoOfWhatIsHandedOver": handsOver, "LetsGoOfWhatLosesItsLabels": strips,
		"LetsGoOfTheAdopted": stripsAdopted, "LeavesStrangersTheirNames": strangers, "RenewsByTemplate": renews,
	}
	for name, test := range suite {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// whole makes a set of the size and waits until it is.
func whole(t *testing.T, s System, size int32) {
	t.Helper()
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Replicas = size })
	rests(t, s, size)
}

// rests waits until the set is whole and its status and its pods say so.
func rests(t *testing.T, s System, size int32) (p *appv1.PodSet) {
	t.Helper()
	reason := "AllAvailable"
	if size == 0 {
		reason = "ScaledToZero"
	}
	s.Until(t, fmt.Sprintf("%d pods are there", size), func() error {
		p = s.Settles(t, lifecycle.OutcomeSettled, reason)
		st := p.Status
		if st.Replicas != size || st.AvailableReplicas != size || st.UpdatedReplicas != size || len(st.PodNames) != int(size) {
			return fmt.Errorf("the status says %d pods, %d available, %d updated: %v", st.Replicas, st.AvailableReplicas, st.UpdatedReplicas, st.PodNames)
		}
		if got := owned(t, s); !slices.Equal(got, st.PodNames) {
			return fmt.Errorf("the set owns %v and tells %v", got, st.PodNames)
		}
		return nil
	})
	return p
}

func owned(t *testing.T, s System) []string {
	var names []string
	for name, is := range s.Owners(t) {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// becomes waits until the set is whole with exactly these pods.
func becomes(t *testing.T, s System, want ...string) {
	t.Helper()
	s.Until(t, fmt.Sprintf("the pods are %v", want), func() error {
		if got := rests(t, s, int32(len(want))).Status.PodNames; !slices.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

func scales(t *testing.T, s System) {
	for _, size := range []int32{1, 5, 0, 3, 2} {
		whole(t, s, size)
	}
}

// replacesLost pauses the set, so that the loss is seen before it is made good.
func replacesLost(t *testing.T, s System) {
	whole(t, s, 3)
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Paused = true })
	s.Lose(t, Set+"-1")
	s.Until(t, "the loss is told", func() error {
		if n := s.Tells(t).Status.Replicas; n != 2 {
			return fmt.Errorf("%d pods are told", n)
		}
		return nil
	})
	s.Apply(t, func(spec *appv1.PodSetSpec) { spec.Paused = false })
	becomes(t, s, Set+"-0", Set+"-1", Set+"-2")
}

func replacesEnded(t *testing.T, s System) {
	whole(t, s, 2)
	s.End(t, Set+"-0")
	becomes(t, s, Set+"-1", Set+"-2")
	if _, is := s.Owners(t)[Set+"-0"]; is {
		t.Error("the pod that ended is still there")
	}
}

func adopts(t *testing.T, s System) {
	s.Put(t, "found", true)
	whole(t, s, 2)
	becomes(t, s, "found", Set+"-0")
}

func adoptsTooMany(t *testing.T, s System) {
	whole(t, s, 2)
	s.Put(t, "one-more", true)
	s.Until(t, "the surplus is gone", func() error {
		if all := s.Owners(t); len(all) != 2 {
			return fmt.Errorf("the pods are %v", all)
		}
		return nil
	})
	rests(t, s, 2)
}

// free checks that the pod is there, and not the set's.
func free(t *testing.T, s System, name string) {
	t.Helper()
	if is, there := s.Owners(t)[name]; !there || is {
		t.Errorf("pod %s: there %v, owned %v; it must be let go and live", name, there, is)
	}
}

func handsOver(t *testing.T, s System) {
	whole(t, s, 2)
	s.Hand(t, Set+"-0")
	becomes(t, s, Set+"-1", Set+"-2")
	free(t, s, Set+"-0")
}

func strips(t *testing.T, s System) {
	whole(t, s, 2)
	s.Strip(t, Set+"-1")
	becomes(t, s, Set+"-0", Set+"-2")
	free(t, s, Set+"-1")
}

func stripsAdopted(t *testing.T, s System) {
	s.Put(t, "found", true)
	whole(t, s, 1)
	s.Strip(t, "found")
	becomes(t, s, Set+"-0")
	free(t, s, "found")
}

func strangers(t *testing.T, s System) {
	s.Put(t, Set+"-0", false)
	s.Put(t, Set+"-2", false)
	whole(t, s, 3)
	becomes(t, s, Set+"-1", Set+"-3", Set+"-4")
	free(t, s, Set+"-0")
	free(t, s, Set+"-2")
}

func renews(t *testing.T, s System) {
	whole(t, s, 4)
	s.Put(t, "found", true)
	whole(t, s, 5)
	s.Apply(t, func(spec *appv1.PodSetSpec) {
		spec.Template.Metadata.Annotations = map[string]string{"example.com/changed": "yes"}
	})
	s.Until(t, "the pods are others", func() error {
		if _, is := s.Owners(t)["found"]; is {
			return errors.New("the adopted one is still there")
		}
		return nil
	})
	rests(t, s, 5)
}
