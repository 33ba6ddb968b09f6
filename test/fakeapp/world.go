package fakeapp

import "slices"

// Health is the state of a member's pod.
type Health string

// A pod is absent, then starts, then is healthy, and may be lost for good. Mad means that
// its state makes no sense.
const (
	Absent       Health = ""
	Starting     Health = "Starting"
	Healthy      Health = "Healthy"
	Lost         Health = "Lost"
	Inconsistent Health = "Mad"
)

// Member is a member in either system, or in both.
type Member struct {
	Name   string
	Listed bool // in the ring's member list
	Voter  bool
	Pod    Health
}

// World is the observed state of a ring. Members are sorted by name.
type World struct {
	Members []Member
	// Revision changes with the member list. Act rejects a step that was decided on an
	// older one.
	Revision int
	// Next is the number of the next new member. Names are never reused.
	Next int
}

func (w World) copy() World {
	w.Members = slices.Clone(w.Members)
	return w
}

func (w World) count(is func(Member) bool) int {
	n := 0
	for _, m := range w.Members {
		if is(m) {
			n++
		}
	}
	return n
}

func (w World) find(is func(Member) bool) (Member, bool) {
	i := slices.IndexFunc(w.Members, is)
	if i < 0 {
		return Member{}, false
	}
	return w.Members[i], true
}

func listed(m Member) bool       { return m.Listed }
func voter(m Member) bool        { return m.Listed && m.Voter }
func healthyVoter(m Member) bool { return voter(m) && m.Pod == Healthy }

// missing returns how many more healthy voters a quorum needs.
func (w World) missing() int {
	voters := w.count(voter)
	if voters == 0 {
		return 0
	}
	return max(0, voters/2+1-w.count(healthyVoter))
}

// change returns the world with the named member changed. It drops a member that neither
// system knows any longer.
func (w World) change(name string, edit func(*Member)) World {
	w = w.copy()
	i := slices.IndexFunc(w.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		w.Members = append(w.Members, Member{Name: name})
		i = len(w.Members) - 1
	}
	edit(&w.Members[i])
	w.Members = slices.DeleteFunc(w.Members, func(m Member) bool { return !m.Listed && m.Pod == Absent })
	return w
}
