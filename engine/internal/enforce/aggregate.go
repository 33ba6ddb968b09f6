package enforce

import (
	"context"
	"slices"

	"github.com/governor-dev/governor/lifecycle/policy"
)

// aggregate has the use of the policies by all applications.
type aggregate struct {
	set       policy.Set
	standings map[string]policy.Usage
	// unseen are policies with an object that was not reconciled yet.
	unseen map[string]bool
	// together are pairs of policies that select the same object.
	together map[[2]string]bool
	// runs are the kinds that are run, sorted.
	runs []string
}

// of returns the policy, and whether all its objects are counted.
func (c aggregate) of(name string) (*policy.Policy, bool) {
	i := slices.IndexFunc(c.set, func(p *policy.Policy) bool { return p.Name == name })
	if i < 0 {
		return nil, false
	}
	return c.set[i], !c.unseen[name]
}

// count looks at every object that is run.
func (r *Store) count(ctx context.Context) (aggregate, error) {
	c := aggregate{standings: map[string]policy.Usage{}, unseen: map[string]bool{}, together: map[[2]string]bool{}}
	if all := r.All.Load(); all != nil {
		c.set = *all
	}
	for kind, f := range r.running() {
		c.runs = append(c.runs, kind.Kind)
		peers, err := f.Peers(ctx)
		if err != nil {
			return c, err
		}
		for _, p := range peers {
			holding, seen := r.holds(f.HolderName(p.Object))
			c.add(c.set.Selecting(p.Object), holding, seen)
		}
	}
	slices.Sort(c.runs)
	return c, nil
}

func (r *Store) holds(holder string) ([]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	holding, seen := r.holding[holder]
	return holding, seen
}

func (c aggregate) add(about policy.Set, holding []string, seen bool) {
	for _, p := range about {
		s := c.standings[p.Name]
		s.Selected++
		if slices.Contains(holding, p.Name) {
			s.Held++
		}
		c.standings[p.Name] = s
		c.unseen[p.Name] = c.unseen[p.Name] || !seen
		for _, other := range about {
			if other != p {
				c.together[[2]string{p.Name, other.Name}] = true
			}
		}
	}
}
