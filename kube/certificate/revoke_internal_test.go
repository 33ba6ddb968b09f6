package certificate

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// leak is a minute after the authority of a fresh world was made.
var leak = noon.Add(time.Minute)

// users are two processes that read ca.crt at their start only, and notice another
// certificate when it suits them.
type users struct {
	world
	trusts map[string][]byte
	shows  map[string][]byte
	// old is the authority that is revoked.
	old *x509.Certificate
	// next is what the recipe reports, and phase what the authority's Secret says.
	next  lifecycle.Revocation
	phase lifecycle.RevocationPhase
}

func newUsers(t *testing.T) *users {
	t.Helper()
	fresh := world{}.after(t, noon)
	u := &users{world: fresh, trusts: map[string][]byte{}, shows: map[string][]byte{}, old: fresh.certificate(t, "ca")}
	u.next.Before = metav1.NewTime(leak)
	for _, name := range []string{"a", "b"} {
		u.trusts[name], u.shows[name] = fresh[name][trust], fresh[name][crt]
	}
	return u
}

// report is what a Planner says about the users.
func (u *users) report() {
	bundle := u.world["ca"][trust]
	u.next.Trusted, u.next.Shown = lifecycle.BundleDigest(bundle), true
	for _, name := range []string{"a", "b"} {
		if !bytes.Equal(u.trusts[name], bundle) {
			u.next.Trusted = ""
		}
		if parseBundle(u.shows[name])[0].CheckSignatureFrom(u.old) == nil {
			u.next.Shown = false
		}
	}
}

func (u *users) revoking() map[string]lifecycle.Certificate {
	all := recipes()
	ca := all["ca"]
	ca.Revocation = new(u.next)
	all["ca"] = ca
	return all
}

func (u *users) judge(t *testing.T, now time.Time) Result {
	t.Helper()
	made, err := Decide(u.requests(u.revoking()), now).Execute(now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// trustEachOther fails the test if one user refuses what the other shows.
func (u *users) trustEachOther(t *testing.T, when string) {
	t.Helper()
	for caller, server := range map[string]string{"a": "b", "b": "a"} {
		if !isSignedBy(parseBundle(u.shows[server])[0], parseBundle(u.trusts[caller]), leak) {
			t.Fatalf("%s: %s refuses %s", when, caller, server)
		}
	}
}

// lives lets the operator, the kubelet and the users act in a random order, with a new
// operator after each write, until nothing changes any more.
func (u *users) lives(t *testing.T, chance *rand.Rand) {
	t.Helper()
	for step := range 2000 {
		u.report()
		switch name := []string{"a", "b"}[chance.IntN(2)]; chance.IntN(4) {
		case 0:
			u.shows[name] = u.world[name][crt]
		case 1:
			u.trusts[name], u.shows[name] = u.world[name][trust], u.world[name][crt]
		default:
			made := u.judge(t, leak)
			changed := u.toWrite(made, manner{backwards: chance.IntN(2) == 0})
			u.phase = made.Phases["ca"]
			if len(changed) > 0 {
				u.world = maps.Clone(u.world)
				u.world[changed[0]] = made.Data[changed[0]]
			}
		}
		u.trustEachOther(t, fmt.Sprintf("step %d", step))
		if u.over() {
			return
		}
	}
	t.Fatalf("the revocation does not end, its phase is %s", u.phase)
}

// over reports whether no user trusts the revoked authority.
func (u *users) over() bool {
	for _, bundle := range []([]byte){u.world["ca"][trust], u.trusts["a"], u.trusts["b"]} {
		if contains(parseBundle(bundle), u.old) {
			return false
		}
	}
	return u.phase == lifecycle.RevocationComplete
}

func TestRevocationKeepsTrust(t *testing.T) {
	for seed := range uint64(30) {
		u := newUsers(t)
		u.lives(t, rand.New(rand.NewPCG(seed, 0)))
		comesToRest(t, u.world, leak)
	}
}

// The authority's Secret is deleted, or the one from before the revocation is restored,
// at any moment of a revocation.
func TestRevocationSurvivesLossOfAuthority(t *testing.T) {
	for seed := range uint64(30) {
		u, chance := newUsers(t), rand.New(rand.NewPCG(seed, 1))
		fresh := u.world
		for range chance.IntN(12) {
			u.report()
			made := u.judge(t, leak)
			for _, name := range u.toWrite(made, manner{})[:min(1, len(u.toWrite(made, manner{})))] {
				u.world = maps.Clone(u.world)
				u.world[name] = made.Data[name]
			}
			name := []string{"a", "b"}[chance.IntN(2)]
			u.trusts[name], u.shows[name] = u.world[name][trust], u.world[name][crt]
		}
		u.world = u.without("ca")
		if chance.IntN(2) == 0 {
			u.world = with(u.world, "ca", fresh["ca"])
		}
		u.lives(t, chance)
	}
}

// revoked is a world after a revocation, and the one before it.
func revoked(t *testing.T) (u *users, before world) {
	t.Helper()
	u = newUsers(t)
	before = u.world
	u.lives(t, rand.New(rand.NewPCG(1, 1)))
	u.report()
	return u, before
}

func TestRevokedAuthorityIsRefused(t *testing.T) {
	u, before := revoked(t)
	cases := map[string]struct {
		restored []string
		want     map[string]string
	}{
		"Authority": {[]string{"ca"}, map[string]string{"ca": ReasonRevoked}},
		"Leaf":      {[]string{"a"}, map[string]string{"a": ReasonUntrusted}},
		"Both":      {[]string{"ca", "a"}, map[string]string{"ca": ReasonRevoked, "a": ReasonUntrusted}},
		"All":       {[]string{"ca", "a", "b"}, map[string]string{"ca": ReasonRevoked, "a": ReasonUntrusted, "b": ReasonUntrusted}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			again := *u
			for _, secret := range c.restored {
				again.world = with(again.world, secret, before[secret])
			}
			made, got := again.judge(t, leak), map[string]string{}
			for _, i := range made.Issued {
				got[i.Secret] = i.Reason
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			for secret, data := range made.Data {
				if contains(parseBundle(data[trust]), u.old) {
					t.Errorf("%s trusts the revoked authority", secret)
				}
				if parseBundle(data[crt])[0].CheckSignatureFrom(u.old) == nil {
					t.Errorf("%s has a certificate of the revoked authority", secret)
				}
			}
		})
	}
}

func TestRevocationPhases(t *testing.T) {
	fresh := world{}.after(t, noon)
	cases := map[string]struct {
		reason string
		report lifecycle.Revocation
		now    time.Time
		want   lifecycle.RevocationPhase
		issued []string
	}{
		"Future":  {"what would be made now would be revoked, too", lifecycle.Revocation{Before: metav1.NewTime(leak)}, noon, lifecycle.RevocationScheduled, nil},
		"Younger": {"the authority is not covered", lifecycle.Revocation{Before: metav1.NewTime(noon)}, leak, lifecycle.RevocationComplete, nil},
		"Begins": {"the next is prepared, and nothing is signed", lifecycle.Revocation{Before: metav1.NewTime(leak)}, leak,
			lifecycle.RevocationDistributing, []string{"ca " + ReasonRevoked}},
		"NotRead": {"a report about another ca.crt says nothing", lifecycle.Revocation{Before: metav1.NewTime(leak), Trusted: "other"}, leak,
			lifecycle.RevocationDistributing, []string{"ca " + ReasonRevoked}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := &users{world: fresh, next: c.report}
			made := u.judge(t, c.now)
			var got []string
			for _, i := range made.Issued {
				got = append(got, i.Secret+" "+i.Reason)
			}
			if made.Phases["ca"] != c.want || !slices.Equal(got, c.issued) {
				t.Errorf("%s: it is %s and issues %v", c.reason, made.Phases["ca"], got)
			}
		})
	}
}

// Without a report each step takes as long as in a rotation that is due.
func TestRevocationEndsWithoutReport(t *testing.T) {
	u := newUsers(t)
	now := leak
	for range 20 {
		plan := Decide(u.requests(u.revoking()), now)
		made, err := plan.Execute(now)
		if err != nil {
			t.Fatal(err)
		}
		if u.world = made.Data; made.Phases["ca"] == lifecycle.RevocationComplete {
			if last := leak.AddDate(0, 0, 61); now.After(last) {
				t.Errorf("it ended at %v, want %v at the latest", now, last)
			}
			return
		}
		now = Decide(u.requests(u.revoking()), now).Due
	}
	t.Error("the revoked authority stays trusted")
}
