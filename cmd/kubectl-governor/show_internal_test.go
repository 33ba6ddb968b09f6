package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// objects reads what a test says there is.
func objects(t *testing.T, documents string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range strings.Split(documents, "---\n") {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = json.Unmarshal(raw, &u.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

func talking(screen *screen) (*session, *bytes.Buffer) {
	var out bytes.Buffer
	now := func() time.Time { return time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC) }
	return &session{IOStreams: genericclioptions.IOStreams{Out: &out}, now: now, screen: screen}, &out
}

const cluster = `
apiVersion: etcd.database.coreos.com/v1
kind: EtcdCluster
metadata: {name: e, namespace: demo, uid: u1, creationTimestamp: "2026-11-20T15:00:00Z"}
status:
  version: {current: 3.6.1}
  replicas: 3
  readyReplicas: 2
  conditions:
  - {type: Ready, status: "False", reason: HeldByGate, message: The step Restart e-1 is held., lastTransitionTime: "2026-11-20T15:30:00Z"}
  - {type: Reconciling, status: "True", reason: HeldByGate, message: The step Restart e-1 is held., lastTransitionTime: "2026-11-20T15:30:00Z"}
  - {type: Drifted, status: "True", reason: Changed, message: Service e was changed., lastTransitionTime: "2026-11-20T15:30:00Z"}
  - {type: RolledBack, status: "False", reason: None, message: No., lastTransitionTime: "2026-11-20T15:30:00Z"}
  members:
  - {name: e-0, role: Leader, health: Healthy, version: 3.6.1, id: ab, since: "2026-11-20T15:58:00Z"}
  - {name: e-1, role: Follower, health: Unhealthy, version: 3.6.0, id: cd, dbSize: 1Mi, problem: ImageUnpullable}
`

const belong = `
apiVersion: v1
kind: Pod
metadata:
  name: e-0-0
  namespace: demo
  labels: {governor.dev/app: etcd}
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: e-0, uid: s0, controller: true}]
spec:
  nodeName: n1
  containers: [{name: etcd, image: "registry:5000/etcd:v3.6.1@sha256:00"}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: e-0-data}}]
status:
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: etcd, restartCount: 2}]
---
apiVersion: v1
kind: Pod
metadata:
  name: e-12345-abcde
  namespace: demo
  labels: {governor.dev/app: memcached}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: e-12345, uid: r0, controller: true}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: e-0-data, namespace: demo, labels: {governor.dev/app: etcd}}
status: {phase: Bound, capacity: {storage: "8589934592"}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: e-7-data, namespace: demo, labels: {governor.dev/app: etcd}}
status: {phase: Pending}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: e-0
  namespace: demo
  uid: s0
  labels: {governor.dev/app: etcd}
  ownerReferences: [{apiVersion: etcd.database.coreos.com/v1, kind: EtcdCluster, name: e, uid: u1, controller: true}]
`

// found is the cluster with what belongs to it, and a pod of another kind's object of
// the same name, as the sources of status return them.
func found(t *testing.T) catch {
	t.Helper()
	all := objects(t, belong)
	return catch{objects(t, cluster), nil, all[:2], all[2:4], all[4:], nil}
}

func TestTree(t *testing.T) {
	s, _ := talking(nil)
	st := &status{session: s}
	var lines []string
	for _, l := range st.branches(found(t)) {
		lines = append(lines, l.lead+l.text)
	}
	want := `etcdcluster/e in demo: not ready, HeldByGate. The step Restart e-1 is held.
held; not ready since 2026-11-20 15:30:00 UTC
drifted: Service e was changed.
├─ e-0  Leader  Healthy  3.6.1
│  └─ pod e-0-0  Ready  v3.6.1  on n1  restarted 2x
│     └─ volume e-0-data  Bound  8Gi
├─ e-1  Follower  Unhealthy  3.6.0  has no pod  ImageUnpullable
└─ volume e-7-data  Pending  (no pod has it)`
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Error(diff)
	}
}

// What a user has to act on besides what the object waits for has a line of its own.
func TestStatusListsFurtherActions(t *testing.T) {
	s, out := talking(nil)
	st := &status{session: s}
	obj := objects(t, strings.Replace(cluster, "  conditions:\n", `  conditions:
  - {type: ResourcesBlocked, status: "True", reason: NameTaken, message: Service e belongs to another., lastTransitionTime: "2026-11-20T15:30:00Z"}
  - {type: CertificatesDue, status: "True", reason: Paused, message: Certificates are due in e-ca., lastTransitionTime: "2026-11-20T15:30:00Z"}
  - {type: DeletionHeld, status: "True", reason: HeldByPolicy, message: The deletion is held., lastTransitionTime: "2026-11-20T15:30:00Z"}
`, 1))[0]
	st.print([]state{st.state(obj)})
	if want := "The step Restart e-1 is held. Service e belongs to another. Certificates are due in e-ca. The deletion is held.\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("the list says %s", out)
	}
	out.Reset()
	s.present(&target{Unstructured: obj})
	st.printTree(tree{state: st.state(obj)})
	for _, want := range []string{
		"\ncannot be provided: Service e belongs to another.\n", "\ncertificates are due: Certificates are due in e-ca.\n", "\ndeletion held: The deletion is held.\n",
		"Not all that belongs to it can be provided, since 2026-11-20 15:30:00 UTC: Service e belongs to another.\n", "Certificates are due, since",
		"Its deletion is held, since",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("without %q: %s", want, out)
		}
	}
}

func TestList(t *testing.T) {
	s, out := talking(nil)
	st := &status{session: s, everywhere: true, output: output{format: formatWide}}
	st.print(st.states(catch{objects(t, cluster)}))
	want := `NAMESPACE   OBJECT          READY   VERSION   MEMBERS   REASON       AGE   MESSAGE
demo        etcdcluster/e   False   3.6.1     2/3       HeldByGate   60m   The step Restart e-1 is held.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestMembers(t *testing.T) {
	s, _ := talking(nil)
	all := records(objects(t, cluster)[0])
	for format, want := range map[string]string{
		formatText: `NAME   ROLE       HEALTH      VERSION   SINCE    PROBLEM
e-0    Leader     Healthy     3.6.1     2m ago   -
e-1    Follower   Unhealthy   3.6.0     -        ImageUnpullable`,
		formatWide: `NAME   ROLE       HEALTH      VERSION   SINCE    PROBLEM           DB-SIZE   ID
e-0    Leader     Healthy     3.6.1     2m ago   -                 -         ab
e-1    Follower   Unhealthy   3.6.0     -        ImageUnpullable   1Mi       cd`,
	} {
		r := &roll{session: s, output: output{format: format}}
		if diff := cmp.Diff(want, strings.Join(r.table(r.rows(all)), "\n")); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
	if names := records(objects(t, "status: {members: [a, b]}")[0]); len(names) != 2 || names[1]["name"] != "b" {
		t.Errorf("names alone are members too: %v", names)
	}
}

// Colours are for terminals whose user wants them, and take no room.
func TestColours(t *testing.T) {
	rows := [][]cell{{{"True", good}, {"x", plain}}, {{"Unknown", bad}, {"y", plain}}}
	for name, c := range map[string]struct {
		screen *screen
		want   string
	}{
		"File":     {nil, "True      x\nUnknown   y"},
		"Terminal": {&screen{colours: true}, "\x1b[32mTrue\x1b[0m      x\n\x1b[31mUnknown\x1b[0m   y"},
		"NoColour": {&screen{}, "True      x\nUnknown   y"},
	} {
		s, _ := talking(c.screen)
		if diff := cmp.Diff(c.want, strings.Join(s.table(rows), "\n")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := cut("\x1b[32mäbc\x1b[0m", 2); got != "\x1b[32mäb\x1b[0m" {
		t.Errorf("cut to %q", got)
	}
}

// On a terminal lines are replaced; elsewhere those that are new are added.
func TestFollowing(t *testing.T) {
	first := []line{{key: "a", text: "a 1"}, {key: "b", text: "b 1"}, {key: "c", text: "c 1", quiet: true}}
	second := []line{{key: "a", lead: "└", text: "a 1"}, {key: "d", text: "d 1"}}
	s, out := talking(nil)
	p := &paper{session: s}
	p.show(first)
	p.show(second)
	if want := "a 1\nb 1\nc 1\nd 1\nb was deleted\n"; out.String() != want {
		t.Errorf("got %q", out)
	}
	s, out = talking(&screen{size: func() (int, int, error) { return 2, 3, nil }})
	p = &paper{session: s, replaces: true}
	p.show(first)
	p.show(second)
	if want := "a \n… \n\x1b[2A\x1b[J└a\nd \n"; out.String() != want {
		t.Errorf("got %q", out)
	}
}

func TestKindsAreCalledByManyNames(t *testing.T) {
	k := kind{v1alpha1.GroupVersion.WithResource("rings"), []string{"rg", "ring"}}
	for word, want := range map[string]bool{
		"rings": true, "Ring": true, "rg": true, "rings.governor.dev": true, "rings.v1alpha1.governor.dev": true,
		"rings.other.dev": false, "r": false, "": false,
	} {
		if got := k.called(word); got != want {
			t.Errorf("%q: %v", word, got)
		}
	}
}

// A digest names one plan: any step more, less, or other, is another.
func TestDigest(t *testing.T) {
	steps := []v1alpha1.ApprovedStep{{Name: "Restart", Target: "e-0", Args: map[string]string{"a": "1", "b": "2"}}, {Name: "Restart", Target: "e-1"}}
	seen := map[string]bool{"": true}
	for _, plan := range [][]v1alpha1.ApprovedStep{steps, steps[:1], {steps[1], steps[0]}, {steps[0], {Name: "Remove", Target: "e-1"}}} {
		d := digest(plan)
		if seen[d] || d != digest(plan) {
			t.Errorf("%q does not tell %v", d, plan)
		}
		seen[d] = true
	}
	if digest(nil) != "" {
		t.Error("no steps have no digest")
	}
}

func TestConfirmation(t *testing.T) {
	for name, c := range map[string]struct {
		asks, yes bool
		answer    string
		ok        bool
	}{
		"Yes": {true, false, "y\n", true}, "No": {true, false, "\n", false}, "End": {true, false, "", false},
		"Flag": {false, true, "", true}, "Pipeline": {false, false, "y\n", false},
	} {
		s, _ := talking(nil)
		s.In, s.ErrOut, s.asks = strings.NewReader(c.answer), &bytes.Buffer{}, c.asks
		a := &approval{session: s, yes: c.yes, lasts: time.Hour}
		if err := a.confirm(2); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
