package webhookcert

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/governor-dev/governor/kube/pki"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	names = []string{"governor-webhook.governor-system.svc"}
)

// made is what the Secret holds after the first replacement at the time.
func made(t *testing.T, now time.Time) Data {
	t.Helper()
	return enacted(t, Replace, nil, now)
}

func enacted(t *testing.T, do Action, data Data, now time.Time) Data {
	t.Helper()
	after, err := Enact(Verdict{Do: do}, data, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// with returns the data with one key changed.
func with(data Data, key string, value []byte) Data {
	changed := maps.Clone(data)
	changed[key] = value
	return changed
}

// shortAuthority is a certificate whose authority ends sooner than itself.
func shortAuthority(t *testing.T) Data {
	t.Helper()
	ca := template(noon, "ca", nil)
	ca.NotAfter = noon.Add(24 * time.Hour)
	authority, err := pki.Issue(ca, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.Issue(template(noon, names[0], names), authority)
	if err != nil {
		t.Fatal(err)
	}
	key, err := leaf.Key()
	if err != nil {
		t.Fatal(err)
	}
	return Data{
		certificateKey: pki.Encode(leaf.Certificate), privateKey: key, authoritiesKey: pki.Encode(authority.Certificate),
	}
}

func TestJudge(t *testing.T) {
	fresh, other, short := made(t, noon), made(t, noon), shortAuthority(t)
	day := func(n int) time.Time { return noon.AddDate(0, 0, n) }
	prepared := enacted(t, Prepare, fresh, day(61))
	both, old := [][]byte{prepared[authoritiesKey]}, [][]byte{fresh[authoritiesKey]}
	settled := day(61).Add(settle)
	cases := map[string]struct {
		reason  string
		data    Data
		names   []string
		bundles [][]byte
		now     time.Time
		do      Action
		why     string
	}{
		"NoSecret":          {"somebody has to begin", nil, names, nil, noon, Replace, "Missing"},
		"EmptySecret":       {"or made one by hand", Data{}, names, nil, noon, Replace, "Unreadable"},
		"Fresh":             {"a good one is left alone", fresh, names, old, noon, Keep, "Good"},
		"Untouched":         {"whatever the callers trust", fresh, names, nil, noon, Keep, "Good"},
		"ClockBehind":       {"clocks differ a little", fresh, names, old, noon.Add(-pki.Skew), Keep, "Good"},
		"NotYetGood":        {"a clock that was far ahead made it", fresh, names, old, day(-1), Replace, "Expired"},
		"NotYetDue":         {"two thirds are not over", fresh, names, old, day(59), Keep, "Good"},
		"NearExpiry":        {"two thirds are over", fresh, names, old, day(61), Prepare, "NearExpiry"},
		"Expired":           {"nobody accepts it", fresh, names, old, day(91), Replace, "Expired"},
		"AuthorityNear":     {"it ends with its authority", short, names, nil, noon.Add(23 * time.Hour), Prepare, "NearExpiry"},
		"AuthorityExpired":  {"nobody accepts it", short, names, nil, day(2), Replace, "Expired"},
		"GarbageCert":       {"it cannot be served", with(fresh, certificateKey, []byte("x")), names, old, noon, Replace, "Unreadable"},
		"GarbageKey":        {"nor without its key", with(fresh, privateKey, nil), names, old, noon, Replace, "Unreadable"},
		"KeyOfAnother":      {"nor with the wrong one", with(fresh, privateKey, other[privateKey]), names, old, noon, Replace, "Unreadable"},
		"GarbageAuthority":  {"callers get what is in here", with(fresh, authoritiesKey, []byte("x")), names, old, noon, Replace, "Untrusted"},
		"ForeignAuthority":  {"it signed something else", with(fresh, authoritiesKey, other[authoritiesKey]), names, old, noon, Replace, "Untrusted"},
		"WrongNames":        {"callers use another name", fresh, []string{"governor-webhook.elsewhere.svc"}, old, noon, Replace, "WrongNames"},
		"OneNameMissing":    {"each name counts", fresh, append([]string{"x"}, names...), old, noon, Replace, "WrongNames"},
		"Settling":          {"API servers need a moment", prepared, names, both, settled.Add(-time.Second), Keep, "Settling"},
		"Settled":           {"they have had it", prepared, names, both, settled, Promote, "Settled"},
		"NotTrusted":        {"the configuration could not be written", prepared, names, old, settled, Keep, "NotYetTrusted"},
		"OneDoesNotTrust":   {"each webhook counts", prepared, names, append(both, old...), settled, Keep, "NotYetTrusted"},
		"NoCaller":          {"nobody needs to trust it", prepared, names, nil, settled, Promote, "Settled"},
		"NeverTrusted":      {"then the old one runs out", prepared, names, old, day(91), Replace, "Expired"},
		"NextIsGarbage":     {"another is prepared", with(prepared, nextCertificateKey, []byte("x")), names, both, settled, Prepare, "NearExpiry"},
		"NextLostAuthority": {"so it is without its authority", with(prepared, authoritiesKey, fresh[authoritiesKey]), names, both, settled, Prepare, "NearExpiry"},
		"Promoted":          {"and the round begins anew", enacted(t, Promote, prepared, settled), names, both, settled, Keep, "Good"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := Judge(c.data, c.names, c.bundles, c.now)
			if v.Do != c.do || v.Reason != c.why {
				t.Errorf("%s: got %s %s, want %s %s", c.reason, v.Do, v.Reason, c.do, c.why)
			}
			if v.Do == Keep && !v.Next.After(c.now) {
				t.Errorf("%s: it would be looked at without end", c.reason)
			}
		})
	}
}

// Whatever is found, one repair leads to a certificate that is good, and then
// nothing is done any more.
func TestOneRepairIsEnough(t *testing.T) {
	fresh := made(t, noon)
	for key := range fresh {
		for _, value := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("-----BEGIN CERTIFICATE-----\n"), 3)} {
			broken := with(fresh, key, value)
			v := Judge(broken, names, nil, noon)
			if v.Do != Replace {
				t.Fatalf("%s is %q: got %s, want Replace", key, value, v.Do)
			}
			if v := Judge(enacted(t, v.Do, broken, noon), names, nil, noon); v.Do != Keep {
				t.Errorf("after the repair: %s %s, want Keep", v.Do, v.Reason)
			}
		}
	}
}

func TestAuthoritiesDoNotPileUp(t *testing.T) {
	data, now := made(t, noon), noon
	for range 20 {
		now = now.AddDate(0, 0, 60)
		data = enacted(t, Promote, enacted(t, Prepare, data, now), now)
		if n := bytes.Count(data[authoritiesKey], []byte("BEGIN CERTIFICATE")); n != 2 {
			t.Fatalf("%d authorities are trusted, want the present and the former", n)
		}
	}
}

func TestNoKeySignsAnything(t *testing.T) {
	for key, value := range enacted(t, Prepare, made(t, noon), noon) {
		if bytes.Contains(value, []byte("PRIVATE KEY")) && key != privateKey && key != nextPrivateKey {
			t.Errorf("%s has a private key: the authority's must be forgotten", key)
		}
	}
}
