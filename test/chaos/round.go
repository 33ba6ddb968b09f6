package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle/chaos"
	"github.com/governor-dev/governor/test/consistencyclient"
)

// plan is one round: an instance, and its manipulations.
type plan struct {
	seed   uint64
	layout layout
	moves  chaos.Composition
}

func (p plan) String() string { return fmt.Sprintf("%s %s", p.layout, p.moves) }

// planned depends on the seed only. Every composition has one move of the catalogue must, of a kind
// that is chosen first, and up to two further moves.
func planned(seed uint64, must, all chaos.Catalogue) plan {
	chance := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	p := plan{seed: seed, layout: chosenLayout(chance)}
	fits := func(m chaos.Manipulation) bool {
		return p.layout.tls() || m.HurtsOperator() || m.Object.Kind != chaos.Secret.Kind
	}
	p.moves = chaos.Compose(all.Where(fits), 1+chance.IntN(3), chance)
	needed := chaos.Compose(oneKind(must.Where(fits), chance), 1, chance)[0]
	first := chance.IntN(len(p.moves))
	needed.Pause = max(needed.Pause, p.moves[first].Pause)
	p.moves[first] = needed
	p.moves = deletionLast(trapsFirst(p.moves, all, func() chaos.Move {
		return chaos.Compose(oneKind(all.Where(func(m chaos.Manipulation) bool { return fits(m) && m.Verb != chaos.VerbMachine }), chance), 1, chance)[0]
	}), all)
	p.layout = p.layout.fitting(p.moves, all)
	return p
}

// oneKind selects the manipulations of one kind: otherwise the custom resource with its many fields
// would dominate, and volumes matter most.
func oneKind(from chaos.Catalogue, chance *rand.Rand) chaos.Catalogue {
	kinds := map[string]bool{}
	for _, m := range from {
		kinds[m.Object.Kind] = true
	}
	names := slices.Sorted(maps.Keys(kinds))
	kind := names[chance.IntN(len(names))]
	return from.Where(func(m chaos.Manipulation) bool { return m.Object.Kind == kind })
}

// round is an executed plan.
type round struct {
	plan
	made []made
	verdict
	err error // it could not be executed
}

func (r round) failed() bool { return len(r.violations) > 0 }

// observers record the effects on the instance.
type observers struct {
	witness   *consistencyclient.Client
	historian *historian
	copies    *copies
	foreign   []bystander
}

// carryOut creates an instance, runs the adversary, and checks the result.
func (a *arena) carryOut(ctx context.Context, p plan) round {
	r := round{plan: p}
	s, err := a.create(ctx, p.layout, hasDisk(p.moves, a.all))
	if s != nil {
		defer s.remove(context.WithoutCancel(ctx))
	}
	if err != nil {
		r.err = fmt.Errorf("no instance to begin with: %w", err)
		return r
	}
	v := newAdversary(s)
	if _, ok := p.layout.application(); ok {
		v.carryOutStateless(ctx, &r)
	} else {
		v.carryOut(ctx, &r)
	}
	for _, m := range v.moves {
		a.say("%-11d %-7s %-40s %-8s %.160s", p.seed, p.layout, chaos.Composition{m.move}, m.outcome, m.detail)
	}
	r.made = v.moves
	if r.err == nil {
		a.say("%s", r.line())
	}
	return r
}

// carryOut is a round with an EtcdCluster.
func (v *adversary) carryOut(ctx context.Context, r *round) {
	o, err := v.observe(ctx)
	if err != nil {
		r.err = err
		return
	}
	undone := v.play(ctx, r.moves)
	r.verdict = v.judge(ctx, o, undone)
}

// stop ends all observers; nothing that happens later counts.
func (o *observers) stop() {
	o.copies.end()
	o.witness.Stop()
	o.historian.end()
}

// surround places foreign objects, the neighbor and the policy.
func (v *adversary) surround(ctx context.Context) ([]bystander, error) {
	foreign, err := v.placeForeign(ctx)
	if err != nil {
		return nil, err
	}
	obj, err := v.object(ctx)
	if err != nil {
		return nil, err
	}
	v.born = obj.Spec
	if v.secrets, err = v.savedSecrets(ctx); err != nil {
		return nil, err
	}
	if err := v.placeNeighbor(ctx); err != nil {
		return nil, err
	}
	beside, err := v.neighborObjects(ctx)
	return append(foreign, beside...), errors.Join(err, v.placePolicy(ctx))
}

// observe starts to write, read and watch, and waits until writes are acknowledged.
func (v *adversary) observe(ctx context.Context) (*observers, error) {
	foreign, err := v.surround(ctx)
	if err != nil {
		return nil, err
	}
	o := &observers{
		witness: consistencyclient.Start(ctx, consistencyclient.Options{Find: v.addresses, TLS: v.clients(), Connections: 2, Interval: 40 * time.Millisecond}),
		foreign: foreign, historian: v.record(ctx), copies: v.watchCopies(ctx),
	}
	v.observers = o
	return o, await(ctx, 30*time.Second, 100*time.Millisecond, func(context.Context) error {
		if n := o.witness.Stats().Acknowledged; n < 20 {
			return fmt.Errorf("%d writes are acknowledged", n)
		}
		return nil
	})
}

func inNamespace(s *subject, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Key.Namespace, Name: name}
}

func (r round) line() string {
	if r.failed() {
		return fmt.Sprintf("%-11d %-7s VIOLATED %s\n            %s", r.seed, r.layout, r.moves, joined(r.violations))
	}
	if r.healed == 0 {
		return fmt.Sprintf("%-11d %-7s the adversary destroyed the quorum's data; the instance says so", r.seed, r.layout)
	}
	acts := ""
	if len(r.acts) > 0 {
		acts = fmt.Sprintf(", after a person acted upon %v", r.acts)
	}
	return fmt.Sprintf("%-11d %-7s healed in %.1fs, %d writes, longest gap %.1fs%s", r.seed, r.layout, r.healed.Seconds(), r.writes, r.gap.Seconds(), acts)
}

func joined(lines []string) string {
	all := ""
	for i, l := range slices.Clone(lines) {
		if i > 0 {
			all += "\n            "
		}
		all += l
	}
	return all
}
