package envtest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// boundaries are valid and invalid values of each field of v1beta2. "-" omits the field.
var boundaries = map[string][]string{
	"size":       {"1", "9", "3", "0", "10"},
	"version":    {"-", `""`, "3.5.21", "v3.5.21", "v3.6", "latest", "vv3.6"},
	"repository": {"-", `""`, "example.com/etcd", strings.Repeat("r", 501)},
	"paused":     {"-", "true"},
	"TLS": {"-", "{}", "{static: {}}", "{static: {member: {}}}", "{static: {member: {peerSecret: p}}}", "{static: {operatorSecret: c}}",
		"{static: {member: {serverSecret: s}, operatorSecret: c}}", "{static: {member: {peerSecret: p, serverSecret: s}, operatorSecret: c}}",
		"{static: {member: {peerSecret: " + strings.Repeat("p", 254) + "}}}"},
	"pod.labels":       {"-", "{}", "{a: b}"},
	"pod.antiAffinity": {"-", "true"},
	"pod.affinity":     {"-", "{}", "{nodeAffinity: {}}"},
	"pod.tolerations":  {"-", "[]", "[{key: a}]", "[" + strings.Repeat("{key: a},", 51) + "]"},
	"pod.etcdEnv": {"-", "[]", "[{name: A, value: b}]", "[{name: A}, {name: A}]", "[{name: ETCD_NAME, value: b}]",
		"[" + strings.TrimSuffix(env(51), ",") + "]"},
	"pod.ClusterDomain": {"-", `""`, ".", "..", ".a.b", "a.b.", "a b", strings.Repeat("a", 201)},
	"pod.persistentVolumeClaimSpec": {"-", "-", "{}", "{storageClassName: a}", `{storageClassName: ""}`,
		"{storageClassName: " + strings.Repeat("a", 254) + "}", "{resources: {requests: {storage: 1Gi}}}", "{resources: {requests: {storage: 2Gi}}}",
		"{resources: {requests: {storage: 20Gi}}}", "{resources: {requests: {storage: 63Mi}}}", "{storageClassName: a, resources: {requests: {storage: 8Gi}}}"},
}

func env(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "{name: A%d, value: b},", i)
	}
	return all.String()
}

// beginnings are clusters in v1 with features that v1beta2 cannot express.
var beginnings = []string{
	modern, "{}", "{image: i, version: '3.6'}", "{repository: r}", "{storage: {medium: Memory, size: 1Gi}}", "{storage: {size: 2Gi, storageClassName: a}}",
	"{tls: {mode: Disabled}, clusterDomain: a.b}", "{storage: {medium: Ephemeral}, tls: {mode: Secrets, secrets: {peer: p}}}",
	"{tls: {mode: Secrets, secrets: {server: s, client: c}}}", "{options: {quota: 8Gi}, networkPolicy: {enabled: true, clients: []}}",
}

// vary sets some fields of a spec of v1beta2 to boundary values.
func vary(t *testing.T, rng *rand.Rand, spec map[string]any, fields int) {
	t.Helper()
	names := slices.Sorted(maps.Keys(boundaries))
	for range fields {
		name := names[rng.IntN(len(names))]
		text := boundaries[name][rng.IntN(len(boundaries[name]))]
		path := strings.Split(name, ".")
		if text == "-" {
			unstructured.RemoveNestedField(spec, path...)
			continue
		}
		var value any
		must(t, yaml.Unmarshal([]byte(text), &value))
		must(t, unstructured.SetNestedField(spec, whole(value), path...))
	}
}

// whole converts whole numbers to integers, as in objects of the API.
func whole(value any) any {
	if f, ok := value.(float64); ok {
		return int64(f)
	}
	return value
}

// valid fails if the API server rejects the spec in v1 for a new object, or as a change.
func valid(t *testing.T, namespace, name string, before, after map[string]any, wrote any) {
	t.Helper()
	u := etcdObject(t, "v1", name, namespace, "{}")
	u.Object["spec"] = after
	if err := strict().Create(t.Context(), u.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("v1beta2 accepts %v and makes of it what v1 refuses: %v", wrote, err)
	}
	if before == nil {
		return
	}
	old := etcdObject(t, "v1", name, namespace, "{}")
	old.Object["spec"] = before
	must(t, api.Create(t.Context(), old))
	u.SetResourceVersion(old.GetResourceVersion())
	if err := api.Update(t.Context(), u, client.DryRunAll); err != nil {
		t.Errorf("v1beta2 accepts the change to %v, v1 refuses it: %v", wrote, err)
	}
	must(t, api.Delete(t.Context(), old))
}

// specIn returns the spec of the object in that version.
func specIn(t *testing.T, version, namespace, name string) map[string]any {
	t.Helper()
	u := etcdObject(t, version, name, namespace, "{}")
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	return u.Object["spec"].(map[string]any)
}

// A spec that v1beta2 accepts is valid in v1 too, as a creation and as a change: the API
// server validates only in the version of the request.
func TestLegacyValidationImpliesV1Validation(t *testing.T) {
	a := newConverter(t, time.Now())
	rng := rand.New(rand.NewPCG(3, 4))
	accepted := map[bool]int{}
	for i := range 120 {
		name := fmt.Sprintf("c%d", i)
		u := etcdObject(t, "v1beta2", name, a.namespace, "{size: 3}")
		if i%2 == 0 {
			must(t, api.Create(t.Context(), etcdObject(t, "v1", name, a.namespace, beginnings[i/2%len(beginnings)])))
		} else {
			vary(t, rng, u.Object["spec"].(map[string]any), 3)
			err := api.Create(t.Context(), u.DeepCopy())
			if accepted[err == nil]++; err != nil {
				continue
			}
			valid(t, a.namespace, "new", nil, specIn(t, "v1", a.namespace, name), u.Object["spec"])
		}
		before := specIn(t, "v1", a.namespace, name)
		must(t, api.Get(t.Context(), client.ObjectKeyFromObject(u), u))
		vary(t, rng, u.Object["spec"].(map[string]any), 3)
		err := api.Update(t.Context(), u.DeepCopy())
		if accepted[err == nil]++; err == nil {
			valid(t, a.namespace, "changed", before, specIn(t, "v1", a.namespace, name), u.Object["spec"])
		}
		must(t, api.Delete(t.Context(), u))
	}
	if accepted[true] < 40 || accepted[false] < 40 {
		t.Errorf("accepted and refused: %v, so it tried too little of one", accepted)
	}
}
