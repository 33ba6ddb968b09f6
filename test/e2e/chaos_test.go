package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/chaos/experiment"
)

// TestChaosOnRealApplications disturbs an etcd cluster and a Memcached six times. Both recover,
// and keep their volumes and their etcd members.
func TestChaosOnRealApplications(t *testing.T) {
	c := formed(t, 3)
	ns := c.key.Namespace
	cache := &instance{c.key}
	cache.key.Name = "cache"
	cache.Apply(t, func(spec *cachev1.MemcachedSpec) { spec.Size = 3 })
	cache.Settles(t, lifecycle.OutcomeSettled, "AllAnswer")
	run := []string{
		"chaos", "etcdcluster/etcd", "memcached/cache", "--budget", "6", "--for", "15m", "--pause", "1s", "--lasting", "5s", "--heal-within", "4m",
		"--seed", "4", "--reason", "game day",
	}
	says(t, ns, 1, []string{"the namespace " + ns + " does not permit experiments: its label governor.dev/chaos must be allowed"}, run...)
	if _, err := kubectl("label", "namespace", ns, experiment.OptInLabel+"="+experiment.OptInValue); err != nil {
		t.Fatal(err)
	}
	says(t, ns, 0, []string{"pod-", "Nothing was done."}, append(run, "--dry-run")...)
	before := identities(t, ns)
	r := chaosReport(t, ns, run)
	healsAsReported(t, r)
	if diff := cmp.Diff(before, identities(t, ns)); diff != "" {
		t.Error("a volume or a member is another one:", diff)
	}
	nothingIsLeft(t, ns)
	c.settled(t)
}

// chaosReport runs an experiment and logs it as people see it.
func chaosReport(t *testing.T, ns string, run []string) (r experiment.Report) {
	t.Helper()
	said, code := plugin(t, ns, append(run, "-o", "json")...)
	if err := json.Unmarshal([]byte(said), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v:\n%s", code, err, said)
	}
	t.Logf("%s", said)
	return r
}

// healsAsReported compares the report with the declaration.
func healsAsReported(t *testing.T, r experiment.Report) {
	t.Helper()
	if len(r.Acts) != 6 || r.Outcome != experiment.Completed || r.Seed != 4 || len(r.NotMeasured) == 0 {
		t.Errorf("%s", r.Summary())
	}
	instances, pods := map[string]bool{}, 0
	for _, a := range r.Acts {
		instances[a.Instance] = true
		if strings.HasPrefix(a.Manipulation, "pod-") {
			pods++
		}
		if a.Outcome != experiment.Healed || a.HealedAfter.Duration < 0 || a.Pods != 3 || a.LeastReady < 2 || len(a.Objects) != 1 {
			t.Errorf("act %+v", a)
		}
	}
	if len(instances) != 2 || pods == 0 {
		t.Errorf("instances %v, %d pods: choose a seed that tries both and takes a pod", instances, pods)
	}
}

// identities are the UIDs of the volume claims and the IDs of the members, by name.
func identities(t *testing.T, ns string) map[string]string {
	t.Helper()
	all := map[string]string{}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := api.List(t.Context(), claims, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims.Items {
		all[claim.Name] = string(claim.UID)
	}
	said, err := kubectl("-n", ns, "get", "etcdcluster/etcd", "-o", `jsonpath={range .status.members[*]}{.name}={.id}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(said) {
		name, id, _ := strings.Cut(line, "=")
		all["member "+name] = id
	}
	return all
}

// nothingIsLeft checks for remaining NetworkPolicies and labels of an isolation, and for the events.
func nothingIsLeft(t *testing.T, ns string) {
	t.Helper()
	policies, pods, events := &networkingv1.NetworkPolicyList{}, &corev1.PodList{}, &eventsv1.EventList{}
	for _, list := range []client.ObjectList{policies, events} {
		if err := api.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.List(t.Context(), pods, client.InNamespace(ns), client.HasLabels{"chaos.governor.dev/isolated"}); err != nil {
		t.Fatal(err)
	}
	if len(policies.Items)+len(pods.Items) > 0 {
		t.Errorf("left behind: %v %v", policies.Items, pods.Items)
	}
	said := map[string]int{}
	for _, e := range events.Items {
		said[e.Reason]++
	}
	if said["ChaosBegins"] < 6 || said["ChaosEnds"] != 6 { // one that could not be done has begun, too
		t.Errorf("events: %v", said)
	}
}
