package certificate

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMembersTrustTheirAuthorityOnly(t *testing.T) {
	w, other := world{}.after(t, noon), world{}.after(t, noon)
	w.everyoneCalls(t, noon)
	w["stranger"] = other["a"]
	w["stranger"][trust] = w["a"][trust] // it trusts them
	if w.call("stranger", "b", noon) == nil {
		t.Error("a member accepts a client of another authority")
	}
	w["b"] = other["b"]
	w["b"][trust] = w["a"][trust]
	if w.call("a", "b", noon) == nil {
		t.Error("a member accepts a server of another authority")
	}
}

// manner is how the Secrets of one plan are written.
type manner struct {
	backwards bool // reverses the names within a rank
	dying     bool // after each write another operator takes over
}

var manners = []manner{{}, {backwards: true}, {dying: true}, {backwards: true, dying: true}}

// toWrite returns the Secrets that change, in the order in which they are written.
func (w world) toWrite(made Result, m manner) []string {
	var changed []string
	for name, data := range made.Data {
		if !maps.EqualFunc(w[name], data, bytes.Equal) {
			changed = append(changed, name)
		}
	}
	rank := func(name string) int { return made.rank(name, recipes()[name]) }
	slices.SortFunc(changed, func(a, b string) int {
		byName := strings.Compare(a, b)
		if m.backwards {
			byName = -byName
		}
		return cmp.Or(rank(a)-rank(b), byName)
	})
	return changed
}

// lives goes from one due time to the next, and lets all members call each other
// between any two writes.
func lives(t *testing.T, w world, from, to time.Time, m manner) (world, map[string]int) {
	t.Helper()
	writes := map[string]int{}
	w = maps.Clone(w)
	for now := from; now.Before(to); {
		made, due := w.turn(t, now)
		changed := w.toWrite(made, m)
		if len(changed) == 0 {
			if !due.After(now) {
				t.Fatalf("at %v the next decision is at %v", now, due)
			}
			now = due
			continue
		}
		if m.dying {
			changed = changed[:1]
		}
		for _, name := range changed {
			w[name] = made.Data[name]
			writes[name]++
			w.everyoneCalls(t, now)
		}
	}
	return w, writes
}

func TestRotationKeepsTrust(t *testing.T) {
	for _, m := range manners {
		fresh := world{}.after(t, noon)
		w, writes := lives(t, fresh, noon, after(25, 0), m)
		if bytes.Equal(w["ca"][crt], fresh["ca"][crt]) || writes["a"] < 25 {
			t.Errorf("nothing was rotated: %v", writes)
		}
		if n := len(parseBundle(w["ca"][trust])); n > 3 {
			t.Errorf("%d authorities are trusted, also expired ones", n)
		}
	}
}

func TestLossOfAuthorityKeepsTrust(t *testing.T) {
	fresh := world{}.after(t, noon)
	cases := map[string]struct {
		reason string
		world  world
		now    time.Time
	}{
		"Gone":        {"the Secret was deleted", fresh.without("ca"), noon},
		"Key":         {"its key was damaged", fresh.with("ca", key, []byte("x")), noon},
		"WhenDue":     {"when leaves are to be renewed", fresh.without("ca"), after(0, 250)},
		"Rotating":    {"when it was to be followed", lived(t, fresh, after(6, 300)).without("ca"), after(6, 300)},
		"LostTwice":   {"a second time, at once", fresh.without("ca").after(t, noon).without("ca"), noon},
		"BundleSpoil": {"with the bundle", fresh.with("ca", key, nil).with("ca", trust, nil), noon},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.world.everyoneCalls(t, c.now)
			for _, m := range manners {
				lives(t, c.world, c.now, c.now.AddDate(2, 0, 0), m)
			}
		})
	}
}

// lived is the world at that time without a failure.
func lived(t *testing.T, w world, to time.Time) world {
	t.Helper()
	w, _ = lives(t, w, noon, to, manner{})
	return w
}

func TestLostAuthorityStaysTrusted(t *testing.T) {
	fresh := world{}.after(t, noon)
	w := fresh.without("ca").without("a").after(t, noon)
	if !bytes.Equal(w["b"][crt], fresh["b"][crt]) {
		t.Error("a certificate in use is replaced")
	}
	if w.certificate(t, "a").CheckSignatureFrom(w.certificate(t, "ca")) != nil {
		t.Error("the new authority did not sign the missing leaf")
	}
	if n := len(parseBundle(w["b"][trust])); n != 2 || !bytes.Equal(w["a"][trust], w["b"][trust]) {
		t.Errorf("got %d authorities, want both", n)
	}
	w.everyoneCalls(t, noon)
}

// Promotion changes the signer and not ca.crt, so that no user must read it again.
func TestPromotionKeepsBundle(t *testing.T) {
	fresh := world{}.after(t, noon)
	w := fresh.after(t, after(7, 0))
	edited := w.with("ca", trust, fresh["ca"][trust])
	if !bytes.Equal(edited.after(t, after(7, 1))["a"][trust], w["a"][trust]) {
		t.Error("the next authority does not return to an edited bundle")
	}
	promoted := w.after(t, after(7, 31))
	if bytes.Equal(promoted["ca"][crt], w["ca"][crt]) || !bytes.Equal(promoted["a"][trust], w["a"][trust]) {
		t.Error("the next authority does not sign, or ca.crt changes")
	}
	if _, ok := promoted["ca"][keyNextPrivate]; ok {
		t.Error("the promoted authority is still stored as the next one")
	}
}
