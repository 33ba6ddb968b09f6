package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
)

// revoking is a cluster whose authorities are revoked.
func revoking() *etcdv1.EtcdCluster {
	c := wanted(3)
	c.Spec.TLS.Mode = etcdv1.TLSModeManaged
	c.Spec.TLS.RevokeBefore = new(metav1.NewTime(noon))
	c.Spec.Version, c.Status.Bootstrap.FirstVersion = etcd.Newest, etcd.Newest
	return c
}

// running are members with certificates that started with these authorities.
func (s scene) running(want *etcdv1.EtcdCluster, trust string) scene {
	plain := etcd.Revision(wanted(3))
	for _, m := range s.Members {
		s = s.with(m.Name, func(m *etcd.Member) {
			if m.PeerURL == etcd.PeerURL(wanted(3), m.Name) {
				m.PeerURL = etcd.PeerURL(want, m.Name)
			}
			for _, r := range []*string{&m.Set.Revision, &m.Pod.Revision} {
				if *r == plain {
					*r = etcd.Revision(want) + "." + trust
				}
			}
		})
	}
	return s
}

// at is the world in a phase of the revocation.
func (s scene) at(phase lifecycle.RevocationPhase, trust string) scene {
	s.Revocation, s.Trust = phase, trust
	s.Bundles = map[string]string{"e-ca": "c-" + trust, "e-peer-ca": "p-" + trust}
	return s
}

// Members restart before the next authority signs, and again after the removal of the revoked one.
func TestRevocationPlan(t *testing.T) {
	want := revoking()
	restarts := strings.Join([]string{
		"Restart e-1: 2 of 3 voters serve, none may fail", "(Serving e-1)",
		"Restart e-2: 2 of 3 voters serve, none may fail", "(Serving e-2)",
		"MoveLeader e-1: 3 of 3 voters serve, 1 member may fail",
		"Restart e-0: 2 of 3 voters serve, none may fail", "(Serving e-0)",
	}, "\n")
	again := strings.NewReplacer("e-0", "e-1", "e-1", "e-0", "MoveLeader e-1", "MoveLeader e-0").Replace(restarts)
	cases := map[string]struct {
		reason string
		seen   scene
		plan   string
	}{
		"Begins":    {"the plan includes all of it", serving(3).running(want, "old").at(lifecycle.RevocationDistributing, "both"), restarts + "\n(AuthoritySigns e)\n(AuthorityDropped e)\n" + again + "\nSettled AsDeclared"},
		"Trusted":   {"the first restarts are over", serving(3).running(want, "both").at(lifecycle.RevocationDistributing, "both"), "(AuthoritySigns e)\n(AuthorityDropped e)\n" + restarts + "\nSettled AsDeclared"},
		"Signed":    {"the kubelet brings certificates", serving(3).running(want, "both").at(lifecycle.RevocationReplacing, "both"), "(AuthorityDropped e)\n" + restarts + "\nSettled AsDeclared"},
		"Dropped":   {"members drop the revoked one", serving(3).running(want, "both").at(lifecycle.RevocationComplete, "new"), restarts + "\nSettled AsDeclared"},
		"Over":      {"nothing is left", serving(3).running(want, "new").at(lifecycle.RevocationComplete, "new"), "Settled AsDeclared"},
		"Scheduled": {"its time has not come", serving(3).running(want, "old").at(lifecycle.RevocationScheduled, "old"), "Settled AsDeclared"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.plan, steps(want, c.seen.World)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

// recipe is the revocation in the certificate request of one authority.
func recipe(t *testing.T, want *etcdv1.EtcdCluster, seen etcd.World, secret string) lifecycle.Revocation {
	t.Helper()
	all, err := etcd.Planner{}.Resources(want, seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range all {
		if s, ok := obj.(*corev1.Secret); ok && s.Name == secret {
			c, _, err := lifecycle.CertificateOf(s)
			if err != nil || c.Revocation == nil {
				t.Fatalf("%s revokes nothing: %v", secret, err)
			}
			return *c.Revocation
		}
	}
	t.Fatalf("there is no Secret %s", secret)
	return lifecycle.Revocation{}
}

func TestRevocationWaitsForAllMembers(t *testing.T) {
	want := revoking()
	renewed := func(m *etcd.Member) { m.Renewed = true }
	gone := func(m *etcd.Member) { m.Pod = etcd.Pod{} }
	both := serving(3).running(want, "both")
	all := both.with("e-0", renewed).with("e-1", renewed).with("e-2", renewed)
	cases := map[string]struct {
		reason  string
		seen    scene
		trusted string
		shown   bool
	}{
		"Old":         {"no member has restarted", serving(3).running(want, "old").at(lifecycle.RevocationDistributing, "both"), "", false},
		"All":         {"all have read it", both.at(lifecycle.RevocationDistributing, "both"), "c-both", false},
		"OneDown":     {"an unavailable member may return", both.with("e-2", gone).at(lifecycle.RevocationDistributing, "both"), "", false},
		"AnotherRead": {"what they read is another bundle", both.at(lifecycle.RevocationDistributing, "third"), "", false},
		"NotShown":    {"one shows the former certificate", both.with("e-0", renewed).with("e-1", renewed).at(lifecycle.RevocationReplacing, "both"), "c-both", false},
		"Shown":       {"none does", all.at(lifecycle.RevocationReplacing, "both"), "c-both", true},
		"Early":       {"no member is checked yet", all.at(lifecycle.RevocationDistributing, "both"), "c-both", false},
		"AtRest":      {"nothing waits for a report", all.at(lifecycle.RevocationComplete, "both"), "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := recipe(t, want, c.seen.World, "e-ca")
			if got.Trusted != c.trusted || got.Shown != c.shown || !got.Before.Equal(want.Spec.TLS.RevokeBefore) {
				t.Errorf("%s: %+v", c.reason, got)
			}
		})
	}
}

// A revocation ends from every small world in every phase, and never breaks a quorum.
func TestRevocationSettlesFromEverySmallWorld(t *testing.T) {
	for _, phase := range []lifecycle.RevocationPhase{"", lifecycle.RevocationDistributing, lifecycle.RevocationReplacing, lifecycle.RevocationComplete} {
		t.Run("Phase"+string(phase), func(t *testing.T) {
			t.Parallel()
			smallWorlds(letters+byHand, atMost(3, 2), func(code string) {
				want := revoking()
				want.Status.Bootstrap.Formed = true
				for _, runs := range []string{"old", "both"} {
					seen := world(code).running(want, runs).at(phase, "both")
					if etcd.KeepsQuorum.Violation(want, seen.World) > 0 {
						told(want, seen)
						seen = seen.silent()
					}
					follow(t, code+" "+string(phase)+" from "+runs, want.DeepCopy(), seen.World)
				}
			})
		})
	}
}

func TestRevocationCondition(t *testing.T) {
	want := revoking()
	both := serving(3).running(want, "both")
	cases := map[string]struct {
		seen   scene
		reason string
	}{
		"Unknown":      {both, "DistributingTrust"},
		"Scheduled":    {both.at(lifecycle.RevocationScheduled, "both"), "Scheduled"},
		"Distributing": {both.at(lifecycle.RevocationDistributing, "both"), "DistributingTrust"},
		"Replacing":    {both.at(lifecycle.RevocationReplacing, "both"), "ReplacingCertificates"},
		"Removing":     {both.at(lifecycle.RevocationComplete, "new"), "RemovingTrust"},
		"Revoked":      {both.at(lifecycle.RevocationComplete, "both"), "Revoked"},
	}
	for name, c := range cases {
		all := etcd.Planner{}.Conditions(want, c.seen.World, lifecycle.Decision{})
		got := all[len(all)-1]
		if got.Type != "AuthorityRevoked" || got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != (c.reason == "Revoked") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if all := (etcd.Planner{}).Conditions(wanted(3), serving(3).World, lifecycle.Decision{}); all[len(all)-1].Type == "AuthorityRevoked" {
		t.Error("a condition reports a revocation without one")
	}
}

// A revocation restarts members for their authorities only, not for the field.
func TestRevocationKeepsRevision(t *testing.T) {
	want := revoking()
	before := want.DeepCopy()
	before.Spec.TLS.RevokeBefore = nil
	if etcd.Revision(want) != etcd.Revision(before) {
		t.Error("the field alone restarts members")
	}
}

func TestRevocationWarnings(t *testing.T) {
	plain, want := wanted(3), revoking()
	plain.Spec.TLS.Mode = etcdv1.TLSModeManaged
	later := want.DeepCopy()
	later.Spec.TLS.RevokeBefore = new(metav1.NewTime(noon.Add(time.Hour)))
	for name, c := range map[string]struct {
		old, want *etcdv1.EtcdCluster
		said      int
	}{"New": {nil, want, 0}, "Set": {plain, want, 1}, "Same": {want, want, 0}, "Later": {want, later, 1}, "Plain": {plain, plain, 0}} {
		said := etcd.Planner{}.Warnings(c.old, c.want)
		if len(said) != c.said {
			t.Errorf("%s: %q", name, said)
		}
		for _, s := range said {
			if !strings.Contains(s, c.want.Spec.TLS.RevokeBefore.UTC().Format(time.RFC3339)) {
				t.Errorf("%s: a wrong year is not seen: %s", name, s)
			}
			if len(s)+50 > 256 { // the name may be longer
				t.Errorf("%s: %d characters: %s", name, len(s), s)
			}
		}
	}
}

// A volume that is kept, because a user removed its member, has no pod that ever trusts an authority.
func TestRevocationDoesNotWaitForAKeptVolume(t *testing.T) {
	want := revoking()
	renewed := func(m *etcd.Member) { m.Renewed = true }
	all := serving(3).running(want, "both").with("e-0", renewed).with("e-1", renewed).with("e-2", renewed).with("e-7", onlyClaim)
	if got := recipe(t, want, all.at(lifecycle.RevocationDistributing, "both").World, "e-ca"); got.Trusted != "c-both" {
		t.Errorf("all members trust the next authority, and it may not sign: %+v", got)
	}
	if got := recipe(t, want, all.at(lifecycle.RevocationReplacing, "both").World, "e-ca"); !got.Shown {
		t.Errorf("no member presents a certificate of the revoked authority, and it stays trusted: %+v", got)
	}
}
