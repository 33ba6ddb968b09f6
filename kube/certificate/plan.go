package certificate

import (
	"time"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

// Request is one Secret that requests a certificate.
type Request struct {
	Name string
	// Certificate is what the Secret requests.
	Certificate lifecycle.Certificate
	// Data is what the Secret holds; empty if it does not exist.
	Data map[string][]byte
}

// Plan is the decision about all Secrets of one owner.
type Plan struct {
	authorities []*authority
	leaves      []leaf

	// Due is when to decide again if nothing changes before; zero without requests.
	Due time.Time
}

// Decide plans all Secrets of one owner. The requests must include the authority of every
// leaf.
func Decide(requests []Request, now time.Time) Plan {
	p := Plan{}
	byName := map[string]*authority{}
	for _, r := range requests {
		if r.Certificate.Authority == "" {
			a := planAuthority(r, leavesOf(r.Name, requests), now)
			p.authorities, byName[r.Name] = append(p.authorities, a), a
			p.Due = soonest(now, p.Due, a.due)
		}
	}
	for _, r := range requests {
		if r.Certificate.Authority != "" {
			l := planLeaf(r, byName[r.Certificate.Authority], now)
			l.authority.inUse = l.authority.inUse || l.keptRevoked
			p.leaves = append(p.leaves, l)
			p.Due = soonest(now, p.Due, l.due)
		}
	}
	return p
}

func leavesOf(authority string, requests []Request) []Request {
	var leaves []Request
	for _, r := range requests {
		if r.Certificate.Authority == authority {
			leaves = append(leaves, r)
		}
	}
	return leaves
}

// readPair returns the pair under the two keys, or its fault.
func readPair(data map[string][]byte, certificate, key string) (*pki.Pair, string) {
	if len(data[certificate]) == 0 && len(data[key]) == 0 {
		return nil, ReasonMissing
	}
	pair, err := pki.Parse(data[certificate], data[key])
	if err != nil {
		return nil, ReasonUnreadable
	}
	return pair, ""
}
