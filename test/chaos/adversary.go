package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// adversary makes the moves of one composition, and records what it destroyed.
type adversary struct {
	*subject
	moves []made
	undos []func(context.Context) error
	hangs bool // it had a volume accept no write

	mu     sync.Mutex
	claims map[string]bool // deleted by it, by name
	gone   map[uint64]bool // member IDs removed by it
	ended  bool            // it terminated pods
}

func newAdversary(s *subject) *adversary {
	return &adversary{subject: s, claims: map[string]bool{}, gone: map[uint64]bool{}}
}

// play makes all moves, pauses, and stops.
func (v *adversary) play(ctx context.Context, c chaos.Composition) error {
	for _, move := range c {
		what, ok := v.all.Named(move.Name)
		if !ok {
			return fmt.Errorf("the catalogue has no manipulation %q", move.Name)
		}
		v.make(ctx, move, what)
		pause(ctx, move.Pause)
	}
	return v.stop(context.WithoutCancel(ctx)) // a frozen node or volume stays, if the run is interrupted here
}

func (v *adversary) make(ctx context.Context, move chaos.Move, what chaos.Manipulation) {
	m := made{move: move, what: what, outcome: moveDone}
	limited, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	done, err := v.do(limited, what, move.Target)
	if done.Undo != nil {
		v.undos = append(v.undos, done.Undo)
	}
	m.detail = strings.Join(done.Objects, ",")
	v.remember(what, done.Objects)
	switch {
	case errors.Is(err, does.ErrNothing):
		m.outcome = moveNothing
	case err != nil:
		m.outcome, m.detail = moveRefused, err.Error()
	}
	v.moves = append(v.moves, m)
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
	return v.Do(ctx, v.api, what, target)
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
	case what.Takes == chaos.PartPod, what.Name == "pod-edit-deadline", strings.HasPrefix(what.Name, "statefulset-edit-replicas-zero"):
		v.ended = v.ended || len(objects) > 0
	}
}

// removed records a member that the adversary removed from etcd's list.
func (v *adversary) removed(id uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone[id] = true
}

// destroyed is the number of copies that the adversary may have destroyed. A deleted claim is a
// copy as long as its pod runs.
func (v *adversary) destroyed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
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

// stop reverts lasting moves, the last one first, and retries: the API server may be restarting.
func (v *adversary) stop(ctx context.Context) error {
	var all error
	for i := len(v.undos) - 1; i >= 0; i-- {
		all = errors.Join(all, await(ctx, time.Minute, time.Second, v.undos[i]))
	}
	v.undos = nil
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
