package experiment

import (
	"context"
	"errors"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// Safe returns the manipulations that an experiment may do: pods deleted and evicted, the
// network as far as a NetworkPolicy reaches, and configuration that the operator restores.
func Safe() chaos.Catalogue {
	all := chaos.Generate(
		chaos.Pod, chaos.StatefulSet, chaos.Deployment, chaos.Service, chaos.ConfigMap, chaos.Secret,
		chaos.PodDisruptionBudget, chaos.NetworkPolicy,
	)
	return append(all, chaos.Pods()...).Safe()
}

// Plan returns what Run would do if everything healed and stayed as it is, one instance at
// a time, and what would be left out. It does nothing.
func (e *Experiment) Plan(ctx context.Context) ([]Act, []LeftOut, error) {
	r := e.start()
	states := make([]State, len(e.Instances))
	for i, instance := range e.Instances {
		var err error
		if states[i], err = instance.Look(ctx); err != nil {
			return nil, nil, err
		}
	}
	var acts []Act
	for len(acts) < e.Limits.Budget {
		i, number, _ := r.take()
		delete(r.busy, i)
		a, ok, err := r.foretell(ctx, i, states[i])
		if err != nil || !ok {
			return acts, r.report.LeftOut, err
		}
		a.Number = number
		acts = append(acts, a)
	}
	return acts, r.report.LeftOut, nil
}

// foretell draws as begin does.
func (r *run) foretell(ctx context.Context, i int, s State) (Act, bool, error) {
	impossible := map[string]bool{}
	for {
		m, ok := r.draw(i, s, impossible)
		if !ok {
			return Act{}, false, nil
		}
		names, err := r.Instances[i].Names(ctx, m.Manipulation, m.target)
		if errors.Is(err, ErrImpossible) {
			impossible[m.Name] = true
			r.leaveOut(r.Instances[i], m.Name, err.Error())
			continue
		}
		return Act{Instance: r.Instances[i].String(), Manipulation: m.Name, Sentence: m.Sentence, Objects: names}, true, err
	}
}
