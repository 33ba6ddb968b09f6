package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// Outcomes of a move.
const (
	moveDone    = "done"
	moveRefused = "refused" // by the API server, etcd or a disruption budget
	moveNothing = "nothing" // there was no target
)

// made is a completed move.
type made struct {
	move    chaos.Move
	what    chaos.Manipulation
	outcome string
	detail  string
}

// lasting is what goes on until it is undone.
type lasting struct {
	undo func(context.Context) error
	// byUser says that a user or an administrator did it to the instance itself: its status may say
	// how to end that.
	byUser bool
}

// adversary makes the moves of one composition, and records what it destroyed.
type adversary struct {
	*subject
	moves   []made
	lasting []lasting
	hangs   bool // it had a volume accept no write
	born    etcdv1.EtcdClusterSpec
	bornAs  *unstructured.Unstructured
	secrets []corev1.Secret // at the beginning of the round
	person  person

	installs  []func(context.Context) error // that put back what it did to the operator's own objects
	observers *observers
	departed  *inventory // what the instance was before the adversary deleted it
	accepted  []string   // what the API server accepts, and should refuse

	mu     sync.Mutex
	claims map[string]bool // deleted by it, by name
	gone   map[uint64]bool // member IDs removed by it
	pods   map[string]bool // terminated by it, by name and in the order of moves
}

func newAdversary(s *subject) *adversary {
	return &adversary{
		subject: s, claims: map[string]bool{}, gone: map[uint64]bool{}, pods: map[string]bool{}, person: person{done: map[stall]int{}, told: map[stall]bool{}},
	}
}

// play makes all moves, pauses, and stops. Before it takes back what users did, a person does what the
// instance says about that.
func (v *adversary) play(ctx context.Context, c chaos.Composition) error {
	for _, move := range c {
		what, ok := v.of(v.layout).Named(move.Name)
		if !ok {
			return fmt.Errorf("the catalogue has no manipulation %q", move.Name)
		}
		v.make(ctx, move, what)
		pause(ctx, move.Pause)
	}
	after := context.WithoutCancel(ctx) // a frozen node or volume stays, if the run is interrupted here
	err := v.stop(after, func(l lasting) bool { return !l.byUser })
	if len(v.lasting) > 0 {
		v.consult(ctx)
	}
	return errors.Join(err, v.stop(after, func(lasting) bool { return true }))
}

func (v *adversary) make(ctx context.Context, move chaos.Move, what chaos.Manipulation) {
	m := made{move: move, what: what, outcome: moveDone}
	limited, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	var err error
	if what.DeletesInstance() {
		err = v.depart(limited, what)
	}
	var done does.Done
	if err == nil {
		done, err = v.do(limited, what, move.Target)
	}
	if done.Undo != nil {
		v.lasting = append(v.lasting, lasting{done.Undo, byUser(what)})
	}
	m.detail = strings.Join(done.Objects, ",")
	v.remember(what, done.Objects)
	switch {
	case errors.Is(err, does.ErrNothing):
		m.outcome = moveNothing
	case err != nil:
		m.outcome, m.detail = moveRefused, err.Error()
	case what.Refused && !v.layout.accepts(what.Name):
		v.accepted = append(v.accepted, what.Name+" must be refused, and was accepted")
	}
	if m.outcome != moveDone && what.DeletesInstance() {
		v.departed = nil
	}
	v.moves = append(v.moves, m)
}

// byUser reports whether a user or an administrator ends the manipulation, and not time: the status of the
// instance may say how.
func byUser(m chaos.Manipulation) bool {
	rights := m.HurtsOperator() && m.Verb == chaos.VerbPatch
	return m.Object.Custom || m.Verb == chaos.VerbAddFinalizer || m.Verb == chaos.VerbAdmin || m.Object.Kind == chaos.Secret.Kind || rights
}

// do dispatches by the place of the manipulation.
func (v *adversary) do(ctx context.Context, what chaos.Manipulation, target int) (does.Done, error) {
	switch what.Verb {
	case chaos.VerbMachine:
		return v.hurtMachine(ctx, what, target)
	case chaos.VerbKill, chaos.VerbFreeze:
		return v.signal(ctx, what, target)
	case chaos.VerbAdmin:
		return v.administer(ctx, what, target)
	}
	if len(what.Object.Names) > 0 {
		return v.hurtInstallation(ctx, what, target)
	}
	done, err := v.Do(ctx, v.api, what, target)
	if v.layout.has(ownTLS) && what.Object.Kind == chaos.Secret.Kind && done.Undo == nil {
		done.Undo = func(ctx context.Context) error { return restoreSecrets(ctx, v, nil) } // the operator cannot
	}
	return done, err
}

// remember records which members and volumes the adversary deletes.
func (v *adversary) remember(what chaos.Manipulation, objects []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case what.Takes == chaos.PartVolume && what.Object.Kind == chaos.PersistentVolumeClaim.Kind:
		for _, name := range objects {
			v.claims[name] = true
		}
	case what.Object.Kind == chaos.Node.Kind: // its pods are recorded one by one
	case what.Takes == chaos.PartPod, strings.HasSuffix(what.Name, "-deadline"), strings.Contains(what.Name, "-replicas-zero"):
		for _, name := range objects {
			v.pods[fmt.Sprintf("%s/%d", name, len(v.pods))] = true
		}
	}
}

// removed records a member that the adversary removed from etcd's list.
func (v *adversary) removed(id uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone[id] = true
}

// destroyed is the number of copies that the adversary may have destroyed. A deleted claim is a
// copy as long as its pod runs. A volatile copy is destroyed with its pod.
func (v *adversary) destroyed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.layout.volatile():
		return len(v.pods) + len(v.gone)
	case len(v.pods) > 0:
		return len(v.claims) + len(v.gone)
	}
	return len(v.gone)
}

// deletedClaim reports whether the adversary deleted the claim.
func (v *adversary) deletedClaim(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.claims[name]
}

// stop reverts what lasts and is selected, the last move first, and retries: the API server may be restarting.
func (v *adversary) stop(ctx context.Context, selected func(lasting) bool) error {
	var all error
	var left []lasting
	for _, l := range slices.Backward(v.lasting) {
		if !selected(l) {
			left = append([]lasting{l}, left...)
			continue
		}
		all = errors.Join(all, await(ctx, time.Minute, time.Second, l.undo))
	}
	v.lasting = left
	return all
}

// node is the name of the node of the target-th member.
func (v *adversary) node(ctx context.Context, target int) (string, error) {
	pods := v.members(ctx)
	if len(pods) == 0 || pods[target%len(pods)].Spec.NodeName == "" {
		return "", does.ErrNothing
	}
	return pods[target%len(pods)].Spec.NodeName, nil
}

// targets are the pods that receive a signal.
func (v *adversary) targets(ctx context.Context, what chaos.Manipulation, target int) []corev1.Pod {
	pods := v.members(ctx)
	if what.All || len(pods) == 0 {
		return pods
	}
	return pods[target%len(pods):][:1]
}

func (v *adversary) get(ctx context.Context, namespace, name string, into client.Object) error {
	return v.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
}
