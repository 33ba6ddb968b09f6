package policy

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/governor-dev/governor/lifecycle"
)

// Peer is the state of another object that waves depend on.
type Peer struct {
	Object
	// Settled reports whether everything is as declared in the present generation.
	Settled bool
	// Since is the time when Settled last changed.
	Since time.Time
	// Stalled is the reason if the object needs a person to act; empty if not.
	Stalled string
}

// Equal reports whether waves treat both alike.
func (p Peer) Equal(other Peer) bool {
	return p.Settled == other.Settled && p.Since.Equal(other.Since) && p.Stalled == other.Stalled &&
		maps.Equal(p.Labels, other.Labels)
}

// wave returns the wave of the object, counted from 0; objects without a matching wave form
// the last one.
func (p *Policy) wave(o Object) int {
	i := slices.IndexFunc(p.waves, func(s labels.Selector) bool { return s.Matches(labels.Set(o.Labels)) })
	if i < 0 {
		return len(p.waves)
	}
	return i
}

func (p *Policy) waveName(i int) string {
	if i < len(p.spec.Canary.Waves) {
		return p.spec.Canary.Waves[i].Name
	}
	return "the last"
}

// waitsForWave holds the step while an object of an earlier wave is stalled, not settled or
// soaking. The message names the worst one.
func (p *Policy) waitsForWave(q Question) []lifecycle.Refusal {
	if p.spec.Canary == nil || p.wave(q.Object) == 0 {
		return nil
	}
	peers, err := q.Peers()
	if err != nil {
		return p.refuse(GateCanary, time.Time{}, "the state of the objects in the earlier waves is not known: %s", err)
	}
	peer, bad := p.worst(p.before(q.Object, peers), q.Now)
	if !bad {
		return nil
	}
	wave := p.waveName(p.wave(peer.Object))
	switch {
	case peer.Stalled != "":
		return p.refuse(GateCanary, time.Time{}, "halted, because %s of wave %q is stalled: %s", peer.Object, wave, peer.Stalled)
	case !peer.Settled:
		return p.refuse(GateCanary, time.Time{}, "wave %q comes first, and %s of it is not as declared yet", wave, peer.Object)
	}
	end := p.soakEnds(peer)
	return p.refuse(GateCanary, end, "wave %q soaks until %s, when %s of it will have been as declared for %s",
		wave, moment(end, nil), peer.Object, p.spec.Canary.Soak.Duration)
}

// before returns the peers in earlier waves than that of the object, sorted by name.
func (p *Policy) before(o Object, peers []Peer) []Peer {
	wave := p.wave(o)
	var all []Peer
	for _, peer := range peers {
		if p.Selects(peer.Object) && p.wave(peer.Object) < wave {
			all = append(all, peer)
		}
	}
	slices.SortFunc(all, func(a, b Peer) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

func (p *Policy) soakEnds(peer Peer) time.Time { return peer.Since.Add(p.spec.Canary.Soak.Duration) }

// worst returns the peer that delays the next wave the most, and false if none does.
func (p *Policy) worst(peers []Peer, now time.Time) (worst Peer, bad bool) {
	for _, peer := range peers {
		if p.soakEnds(peer).After(now) || peer.Stalled != "" || !peer.Settled {
			if !bad || p.worse(peer, worst) {
				worst, bad = peer, true
			}
		}
	}
	return worst, bad
}

func (p *Policy) worse(a, b Peer) bool {
	switch {
	case (a.Stalled != "") != (b.Stalled != ""):
		return a.Stalled != ""
	case a.Settled != b.Settled:
		return !a.Settled
	}
	return a.Settled && a.Since.After(b.Since)
}
