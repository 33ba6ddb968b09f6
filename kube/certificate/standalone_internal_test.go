package certificate

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/governor-dev/governor/kube/pki"
)

var standalone = Standalone{CommonName: "ca", Names: []string{"governor-webhook.governor-system.svc"}}

type secretData = map[string][]byte

func executed(t *testing.T, action Action, data secretData, now time.Time) secretData {
	t.Helper()
	after, err := standalone.Execute(Decision{Action: action}, data, now)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func edited(data secretData, key string, value []byte) secretData {
	changed := maps.Clone(data)
	changed[key] = value
	return changed
}

// shortAuthority is a certificate whose authority expires sooner than itself.
func shortAuthority(t *testing.T) secretData {
	t.Helper()
	template := authorityTemplate(recipes()["ca"], 24*time.Hour, noon)
	authority, err := pki.Issue(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	template.NotAfter = noon.Add(standaloneLife)
	leaf, err := pki.Issue(standalone.template(template, noon), authority)
	if err != nil {
		t.Fatal(err)
	}
	data := secretData{trust: pki.Encode(authority.Certificate)}
	if err := store(data, crt, key, leaf); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStandaloneDecide(t *testing.T) {
	fresh, other, short := executed(t, ActionReplace, nil, noon), executed(t, ActionReplace, nil, noon), shortAuthority(t)
	day := func(n int) time.Time { return noon.AddDate(0, 0, n) }
	prepared := executed(t, ActionPrepare, fresh, day(61))
	both, old := [][]byte{prepared[trust]}, [][]byte{fresh[trust]}
	settled := day(61).Add(standaloneSettle)
	names := standalone.Names
	cases := map[string]struct {
		data    secretData
		names   []string
		bundles [][]byte
		now     time.Time
		action  Action
		reason  string
	}{
		"no Secret":                             {nil, names, nil, noon, ActionReplace, ReasonMissing},
		"an empty Secret":                       {secretData{}, names, nil, noon, ActionReplace, ReasonMissing},
		"a good certificate":                    {fresh, names, old, noon, ActionKeep, ""},
		"no clients":                            {fresh, names, nil, noon, ActionKeep, ""},
		"clocks differ a little":                {fresh, names, old, noon.Add(-pki.Skew), ActionKeep, ""},
		"not valid yet":                         {fresh, names, old, day(-1), ActionReplace, ReasonExpired},
		"not due yet":                           {fresh, names, old, day(59), ActionKeep, ""},
		"due":                                   {fresh, names, old, day(61), ActionPrepare, ReasonNearEnd},
		"expired":                               {fresh, names, old, day(91), ActionReplace, ReasonExpired},
		"the authority is due":                  {short, names, nil, noon.Add(23 * time.Hour), ActionPrepare, ReasonNearEnd},
		"the authority has expired":             {short, names, nil, day(2), ActionReplace, ReasonExpired},
		"a damaged certificate":                 {edited(fresh, crt, []byte("x")), names, old, noon, ActionReplace, ReasonUnreadable},
		"no key":                                {edited(fresh, key, nil), names, old, noon, ActionReplace, ReasonUnreadable},
		"the key of another certificate":        {edited(fresh, key, other[key]), names, old, noon, ActionReplace, ReasonUnreadable},
		"a damaged second certificate":          {edited(fresh, crt, damagedChain(fresh)), names, old, noon, ActionReplace, ReasonUntrusted},
		"a damaged authority":                   {edited(fresh, trust, []byte("x")), names, old, noon, ActionReplace, ReasonUntrusted},
		"the authority of another certificate":  {edited(fresh, trust, other[trust]), names, old, noon, ActionReplace, ReasonUntrusted},
		"another name":                          {fresh, []string{"governor-webhook.elsewhere.svc"}, old, noon, ActionReplace, ReasonWrongNames},
		"one name is missing":                   {fresh, append([]string{"x"}, names...), old, noon, ActionReplace, ReasonWrongNames},
		"API servers need time":                 {prepared, names, both, settled.Add(-time.Second), ActionKeep, ""},
		"API servers had time":                  {prepared, names, both, settled, ActionPromote, ReasonSettled},
		"the configuration was not written":     {prepared, names, old, settled, ActionKeep, ""},
		"one of the webhooks does not trust it": {prepared, names, append(both, old...), settled, ActionKeep, ""},
		"no client needs to trust it":           {prepared, names, nil, settled, ActionPromote, ReasonSettled},
		"clients never trust it":                {prepared, names, old, day(91), ActionReplace, ReasonExpired},
		"the next certificate is damaged":       {edited(prepared, keyNextCertificate, []byte("x")), names, both, settled, ActionPrepare, ReasonNearEnd},
		"the next authority is lost":            {edited(prepared, trust, fresh[trust]), names, both, settled, ActionPrepare, ReasonNearEnd},
		"promoted":                              {executed(t, ActionPromote, prepared, settled), names, both, settled, ActionKeep, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := Standalone{Names: c.names}.Decide(c.data, c.bundles, c.now)
			if d.Action != c.action || d.Reason != c.reason {
				t.Errorf("got %s %q, want %s %q", d.Action, d.Reason, c.action, c.reason)
			}
			if d.Action == ActionKeep && !d.Next.After(c.now) {
				t.Errorf("the next decision is at %v, now is %v", d.Next, c.now)
			}
		})
	}
}

// damagedChain is a good certificate that a damaged one follows.
func damagedChain(data secretData) []byte {
	return append(bytes.Clone(data[crt]), "-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"...)
}

func TestStandaloneReplacesDamageOnce(t *testing.T) {
	fresh := executed(t, ActionReplace, nil, noon)
	for key := range fresh {
		for _, value := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("-----BEGIN CERTIFICATE-----\n"), 3)} {
			broken := edited(fresh, key, value)
			d := standalone.Decide(broken, nil, noon)
			if d.Action != ActionReplace {
				t.Fatalf("%s is %q: got %s, want Replace", key, value, d.Action)
			}
			if d := standalone.Decide(executed(t, d.Action, broken, noon), nil, noon); d.Action != ActionKeep {
				t.Errorf("after the replacement: got %s %s, want Keep", d.Action, d.Reason)
			}
		}
	}
}

func TestStandaloneTrustsTwoAuthoritiesAtMost(t *testing.T) {
	data, now := executed(t, ActionReplace, nil, noon), noon
	for range 20 {
		now = now.AddDate(0, 0, 60)
		data = executed(t, ActionPromote, executed(t, ActionPrepare, data, now), now)
		if n := len(parseBundle(data[trust])); n != 2 {
			t.Fatalf("got %d authorities, want the current and the former", n)
		}
	}
}

func TestStandaloneStoresNoKeyOfAnAuthority(t *testing.T) {
	data := executed(t, ActionPrepare, executed(t, ActionReplace, nil, noon), noon)
	for name, value := range data {
		if bytes.Contains(value, []byte("PRIVATE KEY")) && name != key && name != keyNextPrivate {
			t.Errorf("%s has a private key", name)
		}
	}
	for _, names := range [][2]string{{crt, key}, {keyNextCertificate, keyNextPrivate}} {
		if pair, err := pki.Parse(data[names[0]], data[names[1]]); err != nil || canSign(pair.Certificate) {
			t.Errorf("%s can sign, or is unreadable: %v", names[0], err)
		}
	}
}
