package main

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// killsAtMost limits how often one trap kills: the kubelet waits longer and longer before it starts a
// container again.
const killsAtMost = 3

// trapHolds is how long a trap stays after the last move, at least: a replica must lead again.
const trapHolds = 30 * time.Second

// trap kills the operator each time that a number of writes has passed.
type trap struct {
	every, writes, kills int
	kill                 func()
}

// noEffect matches writes that change nothing for the instances.
var noEffect = regexp.MustCompile(`/(leases|events|tokenreviews|subjectaccessreviews|selfsubjectaccessreviews)(/|$)`)

// arm sets the trap; nil removes it.
func (p *proxy) arm(t *trap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = t
}

// springs counts the write, and reports whether the operator is to be killed after it.
func (p *proxy) springs(r *http.Request) bool {
	if noEffect.MatchString(r.URL.Path) || r.URL.Query().Has("dryRun") {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil || p.trap.kills >= killsAtMost {
		return false
	}
	if p.trap.writes++; p.trap.writes < p.trap.every {
		return false
	}
	p.trap.writes = 0
	p.trap.kills++
	return true
}

// killAfter lets the write pass, and kills the operator before it hears of that. No other write passes
// until it is dead.
func (p *proxy) killAfter(r *http.Request) {
	p.mu.Lock()
	kill := p.trap.kill
	p.mu.Unlock()
	p.gate.Lock()
	defer p.gate.Unlock()
	p.forward.ServeHTTP(nowhere{header: http.Header{}}, r)
	kill()
}

// setTrap has the operator killed between its writes until that is undone.
func (v *adversary) setTrap(ctx context.Context, what chaos.Manipulation) (does.Done, error) {
	every, err := strconv.Atoi(strings.TrimPrefix(what.Detail, chaos.MachineKillAfter))
	if err != nil || v.proxy == nil {
		return does.Done{}, does.ErrNothing
	}
	v.proxy.arm(&trap{every: every, kill: func() { v.killOperators(context.WithoutCancel(ctx)) }})
	undo := func(context.Context) error { v.proxy.arm(nil); return nil }
	return does.Done{Objects: []string{v.proxy.Address}, Undo: undo}, nil
}

// killOperators kills the processes of all operators.
func (v *adversary) killOperators(ctx context.Context) {
	var pods corev1.PodList
	if v.api.List(ctx, &pods, client.InNamespace(operatorSpace), client.MatchingLabels{"app.kubernetes.io/name": "governor"}) != nil {
		return
	}
	killed := 0
	for _, p := range pods.Items {
		if signalPod(p, syscall.SIGKILL) == nil { // it may be dead already
			killed++
		}
	}
	v.say("            the operator was killed after a write (%d of %d replicas)", killed, len(pods.Items))
}

// trapsFirst moves the manipulations that kill the operator between its writes to the front, and adds a
// move to one that is alone: at rest the operator writes nothing.
func trapsFirst(c chaos.Composition, all chaos.Catalogue, more func() chaos.Move) chaos.Composition {
	var traps, others chaos.Composition
	for _, move := range c {
		if m, ok := all.Named(move.Name); ok && isTrap(m) {
			traps = append(traps, move)
		} else {
			others = append(others, move)
		}
	}
	if len(traps) > 0 && len(others) == 0 {
		others = chaos.Composition{more()}
	}
	if len(traps) > 0 {
		others[len(others)-1].Pause = max(others[len(others)-1].Pause, trapHolds)
	}
	return append(traps, others...)
}

func isTrap(m chaos.Manipulation) bool {
	return m.Object.Kind == chaos.Operator.Kind && strings.HasPrefix(m.Detail, chaos.MachineKillAfter)
}
