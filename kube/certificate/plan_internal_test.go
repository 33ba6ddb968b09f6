package certificate

import (
	"bytes"
	"crypto/x509"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/governor-dev/governor/kube/pki"
	"github.com/governor-dev/governor/lifecycle"
)

const (
	crt   = lifecycle.KeyCertificate
	key   = lifecycle.KeyPrivate
	trust = lifecycle.KeyAuthorities
)

func TestPlan(t *testing.T) {
	fresh, other := world{}.after(t, noon), world{}.after(t, noon)
	preparing, ahead := fresh.after(t, after(7, 0)), fresh.after(t, after(0, 270))
	lateLeaf := func(c *x509.Certificate) { c.NotBefore, c.NotAfter = after(6, 300), after(7, 300) }
	garbage := []byte("x")
	cases := map[string]struct {
		reason string
		world  world
		now    time.Time
		want   map[string]string
	}{
		"Nothing":        {"everything is made at once", world{}, noon, map[string]string{"ca": ReasonMissing, "a": ReasonMissing, "b": ReasonMissing}},
		"Fresh":          {"a good certificate is kept", fresh, noon, nil},
		"ClockBehind":    {"no certificate that it could issue would be good", fresh, after(-20, 0), nil},
		"ClocksDiffer":   {"clocks of a cluster may differ", ahead, after(0, 270).Add(-pki.Skew), nil},
		"ClockWasAhead":  {"members would refuse them for months", ahead, noon, map[string]string{"a": ReasonNotYetValid, "b": ReasonNotYetValid}},
		"LeafGone":       {"only that one is made", fresh.without("a"), noon, map[string]string{"a": ReasonMissing}},
		"LeafEmpty":      {"as if it were gone", fresh.with("a", crt, nil).with("a", key, nil), noon, map[string]string{"a": ReasonMissing}},
		"GarbageCert":    {"a user's edit is repaired", fresh.with("a", crt, garbage), noon, map[string]string{"a": ReasonUnreadable}},
		"GarbageKey":     {"no user can use it", fresh.with("a", key, garbage), noon, map[string]string{"a": ReasonUnreadable}},
		"ForeignKey":     {"it does not belong to the certificate", fresh.with("a", key, fresh["b"][key]), noon, map[string]string{"a": ReasonUnreadable}},
		"OtherMember":    {"it is for another name", fresh.with("a", crt, fresh["b"][crt]).with("a", key, fresh["b"][key]), noon, map[string]string{"a": ReasonWrongNames}},
		"MoreNames":      {"it must not be good for more", fresh.signed(t, "a", func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "b.svc") }), noon, map[string]string{"a": ReasonWrongNames}},
		"OtherAddress":   {"addresses are names", fresh.signed(t, "a", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv6loopback} }), noon, map[string]string{"a": ReasonWrongNames}},
		"FewerUsages":    {"it would be refused as a client", fresh.signed(t, "a", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), noon, map[string]string{"a": ReasonWrongUsages}},
		"LeafThatSigns":  {"a member must not make members", fresh.signed(t, "a", func(c *x509.Certificate) { c.IsCA = true }), noon, map[string]string{"a": ReasonWrongUsages}},
		"SameNames":      {"their order means nothing", fresh.signed(t, "a", func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, c.DNSNames...) }), noon, nil},
		"ForeignLeaf":    {"the authority did not sign it", with(fresh, "a", other["a"]), noon, map[string]string{"a": ReasonUntrusted}},
		"GarbageTrust":   {"the certificate is still good", fresh.with("a", trust, garbage), noon, nil},
		"NotYetDue":      {"two thirds are not over", fresh, after(0, 242), nil},
		"NearEnd":        {"two thirds are over", fresh, after(0, 244), map[string]string{"a": ReasonNearEnd, "b": ReasonNearEnd}},
		"Expired":        {"no user accepts it", fresh, after(0, 366), map[string]string{"a": ReasonExpired, "b": ReasonExpired}},
		"AuthorityGone":  {"what it signed stays in use", fresh.without("ca"), noon, map[string]string{"ca": ReasonMissing}},
		"AuthorityKey":   {"it cannot sign any more", fresh.with("ca", key, garbage), noon, map[string]string{"ca": ReasonUnreadable}},
		"AuthorityLeaf":  {"a member's certificate cannot sign", fresh.with("ca", crt, fresh["a"][crt]).with("ca", key, fresh["a"][key]), noon, map[string]string{"ca": ReasonNotAnAuthority}},
		"AuthorityOther": {"leaves of another authority are issued again", with(fresh, "ca", other["ca"]), noon, map[string]string{"a": ReasonUntrusted, "b": ReasonUntrusted}},
		"AuthorityTrust": {"a bundle that lost everything is restored", fresh.with("ca", trust, garbage), noon, nil},
		"LostAndDue":     {"a new authority waits until it is trusted", fresh.without("ca"), after(0, 244), map[string]string{"ca": ReasonMissing}},
		"LostAndMissing": {"a missing leaf can be signed at once", fresh.without("ca").without("a"), noon, map[string]string{"ca": ReasonMissing, "a": ReasonMissing}},
		"AuthorityNear":  {"the next is prepared early", fresh.signed(t, "a", lateLeaf).signed(t, "b", lateLeaf), after(7, 0), map[string]string{"ca": ReasonNearEnd}},
		"Settling":       {"the present one signs meanwhile", preparing.without("a"), after(7, 29), map[string]string{"a": ReasonMissing}},
		"Settled":        {"then the next takes over", preparing, after(7, 31), map[string]string{"ca": ReasonSettled}},
		"NotCarried":     {"every user must trust it first", preparing.with("b", trust, fresh["b"][trust]), after(7, 31), nil},
		"LostWhileNext":  {"the next is there already", preparing.with("ca", key, garbage), after(7, 1), map[string]string{"ca": ReasonUnreadable}},
		"NextDamaged":    {"another is prepared", preparing.with("ca", keyNextPrivate, garbage), after(7, 1), map[string]string{"ca": ReasonNearEnd}},
		"AuthorityEnded": {"everything has expired", fresh, after(11, 0), map[string]string{"ca": ReasonExpired, "a": ReasonExpired, "b": ReasonExpired}},
		"EmptySecrets":   {"empty Secrets hold nothing", world{"ca": {}, "a": {}, "b": {}}, noon, map[string]string{"ca": ReasonMissing, "a": ReasonMissing, "b": ReasonMissing}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			made, _ := c.world.turn(t, c.now)
			got := map[string]string{}
			for _, i := range made.Issued {
				got[i.Secret] = i.Reason
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
			comesToRest(t, made.Data, c.now)
		})
	}
}

func with(w world, secret string, data map[string][]byte) world {
	changed := maps.Clone(w)
	changed[secret] = data
	return changed
}

// comesToRest checks that a second plan issues nothing, and that the next decision is in
// the future. One more plan may follow a new bundle.
func comesToRest(t *testing.T, w world, now time.Time) {
	t.Helper()
	w = w.after(t, now)
	made, due := w.turn(t, now)
	if diff := cmp.Diff(w, world(made.Data)); diff != "" || len(made.Issued) > 0 {
		t.Errorf("a repaired world is repaired again: %v: %s", made.Issued, diff)
	}
	if !due.After(now) {
		t.Errorf("the next decision is at %v, now is %v", due, now)
	}
}

func TestIssuedCertificates(t *testing.T) {
	w := world{}.after(t, noon)
	ca, a := w.certificate(t, "ca"), w.certificate(t, "a")
	switch {
	case !bytes.Equal(w["ca"][crt], w["ca"][trust]) || !bytes.Equal(w["ca"][crt], w["a"][trust]):
		t.Error("a Secret lacks the authority")
	case !ca.IsCA || ca.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || !ca.MaxPathLenZero:
		t.Error("the authority has the wrong usages")
	case a.IsCA || a.KeyUsage != x509.KeyUsageDigitalSignature || len(a.ExtKeyUsage) != 2:
		t.Error("the leaf has the wrong usages")
	case !bytes.Equal(a.AuthorityKeyId, ca.SubjectKeyId) || len(a.SubjectKeyId) == 0 || len(ca.SubjectKeyId) == 0:
		t.Error("a key ID is missing: authorities that follow each other have the same name")
	case !a.NotBefore.Equal(noon.Add(-time.Hour)) || !a.NotAfter.Equal(after(1, 0)):
		t.Errorf("the leaf is valid from %v to %v", a.NotBefore, a.NotAfter)
	case a.SerialNumber.Cmp(w.certificate(t, "b").SerialNumber) == 0 || a.SerialNumber.BitLen() < 64:
		t.Error("the serial numbers are not random")
	}
}

func TestDueIsTheEarliest(t *testing.T) {
	w := world{}.after(t, noon)
	_, due := w.turn(t, noon)
	begin := noon.Add(-time.Hour)
	if want := begin.Add(after(1, 0).Sub(begin) * 2 / 3); !due.Equal(want) {
		t.Errorf("due at %v, want two thirds of a leaf: %v", due, want)
	}
	w = w.with("b", crt, nil).with("b", key, nil).after(t, after(0, 100))
	if _, again := w.turn(t, after(0, 100)); !again.Equal(due) {
		t.Errorf("due at %v, want that of the older leaf: %v", again, due)
	}
}

func TestLeafEndsWithItsAuthority(t *testing.T) {
	w := world{}.after(t, noon).without("a")
	late := after(9, 200)
	ca := w.certificate(t, "ca")
	w = w.after(t, late)
	if a := w.certificate(t, "a"); !a.NotAfter.Equal(ca.NotAfter) {
		t.Errorf("the leaf ends at %v, its authority at %v", a.NotAfter, ca.NotAfter)
	}
}

func TestEditedLeafAddsNoAuthority(t *testing.T) {
	w, other := world{}.after(t, noon), world{}.after(t, noon)
	stranger := other.certificate(t, "ca")
	edited := w.with("a", trust, append(bytes.Clone(w["a"][trust]), other["ca"][crt]...))
	if contains(parseBundle(edited.after(t, noon)["b"][trust]), stranger) {
		t.Error("a leaf added an authority beside an intact one")
	}
	replaced := w.with("a", trust, other["ca"][crt]).without("ca")
	if contains(parseBundle(replaced.after(t, noon)["b"][trust]), stranger) {
		t.Error("a leaf added an authority that did not sign the leaf")
	}
}

// Operators' clocks may differ by minutes. What a leader with another clock issues works at once,
// and the next leader keeps it.
func TestCertificatesOfAnotherClockWork(t *testing.T) {
	for _, off := range []time.Duration{-10 * time.Minute, -time.Second, time.Second, 10 * time.Minute} {
		w := world{}.after(t, noon.Add(off))
		if err := w.call("a", "b", noon); err != nil {
			t.Errorf("issued by a clock that is off by %s: %v", off, err)
		}
		if made, _ := w.turn(t, noon.Add(-off)); len(made.Issued) > 0 {
			t.Errorf("issued by a clock that is off by %s, and issued again: %v", off, made.Issued)
		}
	}
}
