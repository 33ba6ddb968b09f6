package envtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func etcdObject(t *testing.T, version, name, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := "apiVersion: etcd.database.coreos.com/" + version + "\nkind: EtcdCluster\n"
	if spec != "" {
		text += "spec: " + spec
	}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

func TestEtcdSchema(t *testing.T) {
	namespace := newNamespace(t)
	long, longest := strings.Repeat("a", 47), strings.Repeat("a", 46)
	cases := map[string]struct{ reason, spec, want string }{
		"nothing":       {"everything has a default", "", ""},
		"even":          {"an even size is legal", "{size: 4}", ""},
		"zero":          {"a cluster has at least one member", "{size: 0}", "0: spec.size must be 1 to 9; to delete the cluster, delete the EtcdCluster"},
		"ten":           {"nor are ten members", "{size: 10}", "10: spec.size must be 1 to 9"},
		"text":          {"a number is a number", `{size: "three"}`, "spec.size in body must be of type integer"},
		"minor":         {"a minor release is a version", `{version: "3.6"}`, ""},
		"legacy":        {"old releases are versions, too", `{version: "3.2.13"}`, ""},
		"latest":        {"a tag is not", `{version: latest}`, `spec.version is "latest", allowed are releases such as "3.6.16" and minor releases such as "3.6"`},
		"four":          {"nor is another major release", `{version: "4.0.0"}`, `spec.version is "4.0.0"`},
		"unquoted":      {"nor a number", `{version: 3.6}`, "spec.version in body must be of type string"},
		"unknown":       {"a typo in a field's name is refused", "{sise: 3}", `unknown field "spec.sise"`},
		"two-images":    {"only one can be run", `{image: a/b, repository: c/d, version: "3.6.16"}`, "spec.image and spec.repository exclude each other"},
		"image":         {"an image does not tell its version", `{image: a/b}`, "spec.image needs spec.version"},
		"own-image":     {"with a version it can be run", `{image: a/b, version: "3.6.16"}`, ""},
		"medium":        {"only three are known", "{storage: {medium: Tape}}", `spec.storage.medium: Unsupported value: "Tape"`},
		"memory-class":  {"memory has no class", "{storage: {medium: Memory, storageClassName: fast}}", "spec.storage.storageClassName has no meaning with spec.storage.medium Memory"},
		"memory":        {"memory needs no word about volumes", "{storage: {medium: Memory}}", ""},
		"memory-delete": {"that nothing is kept may be said", "{storage: {medium: Memory, retention: Delete}}", ""},
		"memory-retain": {"nor a volume to keep", "{storage: {medium: Memory, retention: Retain}}", "spec.storage.retention Retain is impossible with spec.storage.medium Memory"},
		"small":         {"etcd needs room for its log", "{storage: {size: 1Mi}}", "spec.storage.size is 1Mi, it must be at least 64Mi"},
		"secrets":       {"own certificates need names", "{tls: {mode: Secrets}}", "spec.tls.mode is Secrets: spec.tls.secrets must be set"},
		"no-mode":       {"names need the mode", "{tls: {secrets: {peer: p}}}", "spec.tls.mode is Managed: spec.tls.secrets must be set with the mode Secrets, and only then"},
		"half-tls":      {"the operator is a client", "{tls: {mode: Secrets, secrets: {server: s}}}", "spec.tls.secrets.server and spec.tls.secrets.client belong together"},
		"own-tls":       {"all three names will do", "{tls: {mode: Secrets, secrets: {peer: p, server: s, client: c}}}", ""},
		"revoke":        {"authorities of Governor's own can be revoked", `{tls: {revokeBefore: "2026-11-23T00:00:00Z"}}`, ""},
		"revoke-own":    {"yours are yours", `{tls: {mode: Secrets, revokeBefore: "2026-11-23T00:00:00Z", secrets: {peer: p}}}`, "spec.tls.revokeBefore has no meaning with spec.tls.mode Secrets"},
		"revoke-word":   {"a word is no time", "{tls: {revokeBefore: now}}", "spec.tls.revokeBefore"},
		"replace-soon":  {"a restart takes longer", "{replaceAfter: 10s}", `spec.replaceAfter is "10s", allowed are durations from "30s" to "168h"`},
		"replace-late":  {"a day is a duration", "{replaceAfter: 24h}", ""},
		"rebalance":     {"a person does it", "{rebalance: Manual}", ""},
		"rebalance-odd": {"a word is none", "{rebalance: Sometimes}", "spec.rebalance"},
		"replace-never": {"a word is none", "{replaceAfter: never}", "spec.replaceAfter"},
		"quota":         {"etcd's database ends at 8Gi", "{options: {quota: 9Gi}}", "spec.options.quota is 9Gi, allowed are 16Mi to 8Gi"},
		"compaction":    {"a mode needs a measure", "{options: {compactionMode: Periodic}}", "spec.options.compactionMode and spec.options.compactionRetention belong together"},
		"compact-by":    {"revisions are counted", "{options: {compactionMode: Revision, compactionRetention: 1h}}", "spec.options.compactionRetention must be a number of revisions"},
		"compact-count": {"and periods are not", "{options: {compactionMode: Revision, compactionRetention: '1000'}}", ""},
		"env":           {"etcd's own variables can be set", "{pod: {env: [{name: ETCD_HEARTBEAT_INTERVAL, value: '200'}]}}", ""},
		"env-denied":    {"unless the operator decides them", "{pod: {env: [{name: ETCD_INITIAL_CLUSTER, value: x}]}}", "spec.pod.env must not set what the operator decides"},
		"env-tls":       {"such as certificates", "{pod: {env: [{name: ETCD_PEER_CERT_FILE, value: x}]}}", "spec.pod.env must not set what the operator decides"},
		"domain":        {"a domain has no dot at its end", "{clusterDomain: .local.}", `spec.clusterDomain is ".local.", allowed are DNS domains`},
		"clients":       {"a policy must be on to name clients", "{networkPolicy: {clients: [{podSelector: {}}]}}", "spec.networkPolicy.clients needs spec.networkPolicy.enabled: true"},
		long:            {"names are limited", "", "metadata.name must be at most 46 characters long"},
		longest:         {"a member's number and a hash fit behind it", "", ""},
		"1st":           {"a Service's name starts with a letter", "", "metadata.name must start with a letter"},
	}
	createEach(t, namespace, cases)
}

func TestEtcdSchemaOfFlags(t *testing.T) {
	namespace := newNamespace(t)
	cases := map[string]struct{ reason, spec, want string }{
		"args":          {"so can flags", "{pod: {args: ['--heartbeat-interval=200']}}", ""},
		"args-denied":   {"with the same exceptions", "{pod: {args: ['--force-new-cluster']}}", "spec.pod.args must not set what the operator decides"},
		"args-quota":    {"spec.options has the quota", "{pod: {args: ['--quota-backend-bytes=1']}}", "spec.pod.args must not set --quota-backend-bytes: use spec.options.quota"},
		"args-mode":     {"and what is compacted", "{pod: {args: ['--auto-compaction-mode=periodic']}}", "use spec.options.compactionMode and spec.options.compactionRetention"},
		"args-retained": {"and how much is kept", "{pod: {args: ['--a=b', '--auto-compaction-retention=1']}}", "use spec.options.compactionMode and spec.options.compactionRetention"},
		"args-snapshot": {"and when etcd takes a snapshot", "{pod: {args: ['--snapshot-count=5']}}", "use spec.options.snapshotCount"},
		"args-longer":   {"a longer name is another flag", "{pod: {args: ['--snapshot-count-x=5']}}", ""},
		"args-version":  {"a member has to serve", "{pod: {args: ['--version']}}", "spec.pod.args must not set --version"},
		"args-gates":    {"the operator sets gates", "{pod: {args: ['--feature-gates=InitialCorruptCheck=false']}}", "spec.pod.args must not set --version, with which etcd only prints its version, nor what the operator decides: --feature-gates"},
		"args-corrupt":  {"also by their former names", "{pod: {args: ['--experimental-initial-corrupt-check=false']}}", "--initial-corrupt-check"},
		"args-shape":    {"a flag begins with two dashes", "{pod: {args: ['-x']}}", "spec.pod.args: each must be a flag with its value"},
	}
	createEach(t, namespace, cases)
}

// createEach creates an EtcdCluster of each spec, under the name of its case.
func createEach(t *testing.T, namespace string, cases map[string]struct{ reason, spec, want string }) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, c.reason, c.want, strict().Create(t.Context(), etcdObject(t, "v1", name, namespace, c.spec)))
		})
	}
}

func refused(t *testing.T, reason, want string, err error) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s, but it is refused: %v", reason, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want %q", reason, err, want)
	}
}

func TestEtcdSchemaOfChanges(t *testing.T) {
	namespace := newNamespace(t)
	cases := map[string]struct{ reason, before, after, want string }{
		"size":       {"size is what changes most", "{size: 3}", "{size: 5}", ""},
		"version":    {"versions are judged by the operator", `{version: "3.6"}`, `{version: "3.5"}`, ""},
		"grow":       {"volumes grow", "{storage: {size: 1Gi}}", "{storage: {size: 2Gi}}", ""},
		"shrink":     {"and never shrink", "{storage: {size: 2Gi}}", "{storage: {size: 1Gi}}", "spec.storage.size is 2Gi and cannot shrink to 1Gi: volumes only grow"},
		"medium":     {"data cannot be moved", "{}", "{storage: {medium: Memory}}", "spec.storage.medium is Persistent and cannot be changed to Memory"},
		"class":      {"nor can volumes", "{storage: {storageClassName: a}}", "{storage: {storageClassName: b}}", "spec.storage.storageClassName cannot be changed"},
		"class-set":  {"also from the default", "{}", "{storage: {storageClassName: b}}", "spec.storage.storageClassName cannot be changed"},
		"retention":  {"what becomes of volumes can be decided late", "{}", "{storage: {retention: Retain}}", ""},
		"tls":        {"TLS cannot be turned on or off later", "{}", "{tls: {mode: Disabled}}", "spec.tls.mode is Managed and cannot be changed to Disabled"},
		"rename":     {"own Secrets can have other names", "{tls: {mode: Secrets, secrets: {peer: a}}}", "{tls: {mode: Secrets, secrets: {peer: b}}}", ""},
		"add":        {"but not another role", "{tls: {mode: Secrets, secrets: {peer: a}}}", "{tls: {mode: Secrets, secrets: {peer: a, server: s, client: c}}}", "peer and server can be renamed, but not added or removed"},
		"domain-set": {"also those without a domain", "{}", "{clusterDomain: c.d}", "spec.clusterDomain cannot be added or removed later"},
		"domain":     {"the cluster domain is immutable", "{clusterDomain: a.b}", "{clusterDomain: c.d}", `spec.clusterDomain is "a.b" and cannot be changed`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := etcdObject(t, "v1", name, namespace, c.before)
			must(t, api.Create(t.Context(), u))
			edited := etcdObject(t, "v1", name, namespace, c.after)
			edited.SetResourceVersion(u.GetResourceVersion())
			refused(t, c.reason, c.want, api.Update(t.Context(), edited))
		})
	}
}

// An object that a later release would not admit can still be changed in other fields. The test
// has a definition of its own, which admits any flag at first.
func TestEtcdFlagsOfAnEarlierReleaseStay(t *testing.T) {
	d := definitionOf(t)
	names := d.Spec.Names
	names.ShortNames, names.Categories = nil, nil
	d = &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "etcdclusters.ratchet.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "ratchet.example.com", Scope: d.Spec.Scope, Names: names,
			Versions: slices.DeleteFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage }),
		},
	}
	rules := setFlagRules(d, nil)
	must(t, api.Create(t.Context(), d))
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), d) })
	namespace := newNamespace(t)
	object := func(name, spec string) *unstructured.Unstructured {
		u := etcdObject(t, "v1", name, namespace, spec)
		u.SetAPIVersion("ratchet.example.com/v1")
		return u
	}
	old := object("old", "{pod: {args: ['--quota-backend-bytes=1']}}")
	eventually(t, "the definition is served", func() error { return api.Create(t.Context(), old.DeepCopy()) })

	eventually(t, "the definition has the rules", func() error {
		now := &apiextensionsv1.CustomResourceDefinition{}
		must(t, api.Get(t.Context(), client.ObjectKeyFromObject(d), now))
		setFlagRules(now, rules)
		return api.Update(t.Context(), now)
	})
	apply := func(u *unstructured.Unstructured, o ...client.ApplyOption) error {
		return api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), append(o, client.FieldOwner("user"), client.ForceOwnership)...)
	}
	eventually(t, "the rules count", func() error {
		if apply(object("other", "{pod: {args: ['--quota-backend-bytes=1']}}"), client.DryRunAll) == nil {
			return errNotYet
		}
		return nil
	})
	refused(t, "other fields can change", "", apply(object("old", "{size: 5}")))
	refused(t, "also in the same block", "", apply(object("old", "{size: 5, pod: {priorityClassName: high, args: ['--quota-backend-bytes=1']}}")))
	refused(t, "the flags cannot", "use spec.options.quota", apply(object("old", "{pod: {args: ['--quota-backend-bytes=2']}}")))
}

// setFlagRules sets the rules of spec.pod.args and returns the former ones.
func setFlagRules(d *apiextensionsv1.CustomResourceDefinition, rules apiextensionsv1.ValidationRules) apiextensionsv1.ValidationRules {
	pod := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["pod"].Properties
	args := pod["args"]
	former := args.XValidations
	args.XValidations = rules
	pod["args"] = args
	return former
}

func TestEtcdDefaultsAreVisible(t *testing.T) {
	u := etcdObject(t, "v1", "plain", newNamespace(t), "")
	must(t, api.Create(t.Context(), u))
	want := "map[rebalance:Manual size:3 storage:map[medium:Persistent size:8Gi] tls:map[mode:Managed]]"
	if got := fmt.Sprint(u.Object["spec"]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLegacySchema(t *testing.T) {
	a := newConverter(t, time.Now())
	cases := map[string]struct{ reason, spec, want string }{
		"ten":     {"sizes are limited in the legacy API, too", "{size: 10}", "10: spec.size must be 1 to 9"},
		"no-size": {"a size was always required", "{}", "spec.size: Required value"},
		"text":    {"a number is a number", "{size: three}", "spec.size in body must be of type integer"},
		"sise":    {"a typo in a field's name is refused", "{sise: 3}", `unknown field "spec.sise"`},
		"version": {"what v1 refuses is no version here", "{size: 3, version: latest}", `spec.version is "latest", allowed are releases such as "3.5.21"`},
		"v":       {"a leading v was allowed", "{size: 3, version: v3.5.21}", ""},
		"none":    {"so was none", `{size: 3, version: ""}`, ""},
		"much":    {"nonsense is refused with its place", "{size: 3, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: much}}}}}", "spec.pod.persistentVolumeClaimSpec.resources.requests.storage"},
		"env":     {"the operator's own variables are refused", "{size: 3, pod: {etcdEnv: [{name: ETCD_INITIAL_CLUSTER, value: x}]}}", "spec.pod.etcdEnv must not set what the operator decides"},
		"domain":  {"dots around a domain were usual", "{size: 3, pod: {ClusterDomain: .cluster.local}}", ""},
		"spaces":  {"spaces were not", `{size: 3, pod: {ClusterDomain: "a b"}}`, `spec.pod.ClusterDomain is "a b", allowed are DNS domains`},
		"client":  {"the operator is a client", "{size: 3, TLS: {static: {member: {serverSecret: s}}}}", "spec.TLS.static.member.serverSecret and spec.TLS.static.operatorSecret belong together"},
		"peers":   {"members may talk in private, clients not", "{size: 3, TLS: {static: {member: {peerSecret: p}}}}", ""},
		"a.b":     {"Services are named after it", "{size: 3}", "metadata.name must start with a letter and contain only"},
		"tiny":    {"etcd reserves 64Mi", "{size: 3, pod: {persistentVolumeClaimSpec: {resources: {requests: {storage: 63Mi}}}}}", "requests.storage must be at least 64Mi"},
		"twice":   {"v1 has a variable once", "{size: 3, pod: {etcdEnv: [{name: A}, {name: A}]}}", "spec.pod.etcdEnv[1]: Duplicate value"},
		"noclass": {"volumes without a class are usual where an administrator makes them", `{size: 3, pod: {persistentVolumeClaimSpec: {storageClassName: ""}}}`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, c.reason, c.want, strict().Create(t.Context(), etcdObject(t, "v1beta2", name, a.namespace, c.spec)))
		})
	}
}

// A field that is immutable in v1 is immutable through the legacy API too.
func TestLegacySchemaOfChanges(t *testing.T) {
	a := newConverter(t, time.Now())
	claim := func(s string) string { return "{size: 3, pod: {persistentVolumeClaimSpec: " + s + "}}" }
	storage := func(s string) string { return claim("{resources: {requests: {storage: " + s + "}}}") }
	const plain, peers = "{size: 3}", "{size: 3, TLS: {static: {member: {peerSecret: p}}}}"
	cases := map[string]struct{ reason, before, after, want string }{
		"size":    {"size is what changes most", plain, "{size: 5}", ""},
		"grow":    {"volumes grow", storage("1Gi"), storage("2Gi"), ""},
		"shrink":  {"and never shrink", storage("2Gi"), storage("1Gi"), "storage cannot shrink: volumes only grow"},
		"default": {"also from the size that is the default", claim("{}"), storage("7Gi"), "storage cannot shrink: without it volumes have 8Gi"},
		"volumes": {"data cannot be moved", plain, storage("1Gi"), "spec.pod.persistentVolumeClaimSpec cannot be added or removed"},
		"away":    {"nor back", storage("1Gi"), plain, "spec.pod.persistentVolumeClaimSpec cannot be added or removed"},
		"class":   {"nor to other disks", claim("{storageClassName: a}"), claim("{storageClassName: b}"), "storageClassName cannot be changed"},
		"domain":  {"the cluster domain is immutable", plain, "{size: 3, pod: {ClusterDomain: .a}}", "spec.pod.ClusterDomain cannot be changed"},
		"labels":  {"the rest of the pod is not", plain, "{size: 3, pod: {labels: {a: b}}}", ""},
		"encrypt": {"TLS cannot be turned on or off later", plain, peers, "the Secrets of members can be renamed, but not added or removed"},
		"rename":  {"Secrets can have other names", peers, "{size: 3, TLS: {static: {member: {peerSecret: q}}}}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := etcdObject(t, "v1beta2", name, a.namespace, c.before)
			must(t, api.Create(t.Context(), u))
			edited := etcdObject(t, "v1beta2", name, a.namespace, c.after)
			edited.SetResourceVersion(u.GetResourceVersion())
			refused(t, c.reason, c.want, api.Update(t.Context(), edited))
		})
	}
}
