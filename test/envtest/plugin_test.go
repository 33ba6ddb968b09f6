package envtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/history"
	"github.com/governor-dev/governor/lifecycle/preview"
	"github.com/governor-dev/governor/test/fakeapp"
)

// built is the folder of the plugin and a kubeconfig, created once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kubectl-governor")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "kubectl-governor"), "../../cmd/kubectl-governor").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, writeKubeconfig(config.Host, filepath.Join(dir, "kubeconfig"))
})

// writeKubeconfig writes an administrator's kubeconfig for the API server at the address.
func writeKubeconfig(host, path string) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	return clientcmd.WriteToFile(*c, path)
}

// plugin runs the plugin as a user does and returns its output and the exit code.
func plugin(t *testing.T, namespace string, args ...string) (string, int) {
	t.Helper()
	dir, err := built()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-governor"), append([]string{"-n", namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "HOME="+dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said.String(), cmd.ProcessState.ExitCode()
}

// expect runs the plugin and checks the exit code and the output.
func expect(t *testing.T, namespace string, code int, all []string, args ...string) string {
	t.Helper()
	said, got := plugin(t, namespace, args...)
	if got != code {
		t.Errorf("kubectl governor %s: exit %d, want %d:\n%s", strings.Join(args, " "), got, code, said)
	}
	for _, words := range all {
		if !strings.Contains(said, words) {
			t.Errorf("kubectl governor %s does not say %q:\n%s", strings.Join(args, " "), words, said)
		}
	}
	return said
}

func TestPluginPlans(t *testing.T) {
	a := previews(t, 2)
	expect(t, a.namespace, 0, []string{"ring/r in " + a.namespace + ": nothing to do"}, "plan", "ring/r")
	t.Log(expect(t, a.namespace, 2, []string{
		"1 step, of which 1 disruptive", "1. Remove m000001 (Disruptive)", "TooManyMembers", "+ create ConfigMap r-odd", "Then: Everything is as declared.",
	}, "plan", "ring/r", "--detailed-exitcode", "--set", "spec.size=1"))
	t.Log(expect(t, a.namespace, 0, []string{"2. Remove m000000", "- delete ConfigMap r"}, "plan", "rings", "r", "--delete"))
	said := expect(t, a.namespace, 0, nil, "plan", "ring/r", "--set", "spec.size=3", "-o", "json")
	if report, ok := preview.Decode(said); !ok || len(report.Actions()) != 2 || report.Operator != "test" {
		t.Errorf("as JSON it is %s", said)
	}
	expect(t, a.namespace, 0, []string{"outcome: Settled", "  name: Add"}, "plan", "ring/r", "--set", "spec.size=3", "-o", "yaml")
	expect(t, a.namespace, 1, []string{"nothing will be done: CannotRender"}, "plan", "ring/r", "--set", "spec.mood=fail")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
}

func TestPluginPlansFiles(t *testing.T) {
	a := previews(t, 2)
	write := func(name string, size int) string {
		path := filepath.Join(t.TempDir(), "ring.yaml")
		text := fmt.Sprintf("apiVersion: %s\nkind: Ring\nmetadata:\n  name: %s\nspec:\n  size: %d\n", fakeapp.GroupVersion, name, size)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	expect(t, a.namespace, 0, []string{"1. Add m000002", "2. Promote m000002"}, "plan", "ring/r", "-f", write("r", 3))
	expect(t, a.namespace, 0, []string{"nothing to do"}, "plan", "-f", write("r", 2))
	expect(t, a.namespace, 0, []string{"ring/new", "3. Promote m000001", "+ create ConfigMap new"}, "plan", "-f", write("new", 2))
	expect(t, a.namespace, 1, []string{"is about ring/r, not about ring/x"}, "plan", "ring/x", "-f", write("r", 3))
	if _, err := get(t, &fakeapp.Ring{}, a.namespace, "new"); err == nil {
		t.Error("a plan has created something")
	}
}

// Every mistake has a clear error message.
func TestPluginMistakes(t *testing.T) {
	a := previews(t, 1)
	expect(t, a.namespace, 1, []string{`"nothings"`}, "plan", "nothings/r")
	expect(t, a.namespace, 1, []string{`"x" not found`}, "plan", "ring/x")
	expect(t, a.namespace, 1, []string{"such as spec.size=5"}, "plan", "ring/r", "--set", "size")
	expect(t, a.namespace, 1, []string{"not run by Governor"}, "plan", "configmap/r", "--set", "data.a=b")
	expect(t, a.namespace, 1, []string{"-o wide is not known"}, "history", "ring/r", "-o", "wide")
	expect(t, a.namespace, 1, []string{"--result Lost is not known"}, "history", "ring/r", "--result", "Lost")
	newMemcached(t, a.namespace, "m", 1)
	expect(t, a.namespace, 1, []string{`error: memcached/m: unknown field "spec.sizes"; kubectl explain memcacheds --recursive lists the fields`}, "plan", "memcached/m", "--set", "spec.sizes=1")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{fakeapp.GroupVersion.Group}, Resources: []string{"rings"}, Verbs: []string{"get"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader"}},
	}
	must(t, api.Create(t.Context(), role))
	must(t, api.Create(t.Context(), binding))
	eventually(t, "the user without permissions gets a message", func() error {
		if said, _ := plugin(t, a.namespace, "plan", "ring/r", "--as", "reader"); !strings.Contains(said, "it needs the same right, to patch rings") {
			return errors.New(said)
		}
		return nil
	})
}

// While Governor is down, a plan says so, and other users write.
func TestPluginWithoutGovernor(t *testing.T) {
	a := previews(t, 1)
	a.stop()
	expect(t, a.namespace, 1, []string{"Governor does not answer"}, "plan", "ring/r", "--set", "spec.size=3")
	began := time.Now()
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	t.Logf("a write took %s", time.Since(began))
}

func TestPluginPrintsHistory(t *testing.T) {
	a := previews(t, 3)
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	t.Log(expect(t, a.namespace, 0, []string{"Add m000000 in", "TooManyMembers: Remove m000002", "(generation 2 by "}, "history", "ring/r"))
	if said := expect(t, a.namespace, 0, []string{"Promote"}, "history", "ring/r", "--step", "promote"); strings.Contains(said, "Remove") {
		t.Errorf("only promotions were asked for:\n%s", said)
	}
	expect(t, a.namespace, 0, []string{"no matching entry"}, "history", "ring/r", "--result", "Failed")
	t.Log(expect(t, a.namespace, 0, []string{"generation 2", "Remove m000002 in", "Now: it is ready"}, "why", "ring/r"))
	cm, err := get(t, &corev1.ConfigMap{}, a.namespace, "r.ring-history")
	must(t, err)
	cm.Data[history.Key] = strings.Replace(cm.Data[history.Key], "m000000", "m000009", 1)
	must(t, api.Update(t.Context(), cm))
	expect(t, a.namespace, 1, []string{"it was changed afterwards"}, "history", "ring/r")
	said := expect(t, a.namespace, 1, nil, "history", "ring/r", "-o", "json")
	var r struct{ Intact bool }
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&r); err != nil || r.Intact {
		t.Errorf("%v: %s", err, said)
	}
}

func TestPluginPausesAndPrintsStatus(t *testing.T) {
	a := previews(t, 1)
	expect(t, a.namespace, 0, []string{"ring/r paused"}, "pause", "ring/r")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionPaused, metav1.ConditionTrue, "Paused")
	expect(t, a.namespace, 0, []string{"It is paused"}, "plan", "ring/r", "--set", "spec.size=2")
	expect(t, a.namespace, 0, []string{"OBJECT", "ring/r   Paused"}, "status")
	expect(t, a.namespace, 0, []string{"ring/r resumed"}, "resume", "ring/r")
	ringReaches(t, a.namespace, "r", lifecycle.ConditionReady, metav1.ConditionTrue, "AsDeclared")
	eventually(t, "it is ready again", func() error {
		if said, _ := plugin(t, a.namespace, "status", "ring/r"); !strings.Contains(said, "ready. Everything is as declared.") {
			return errors.New(said)
		}
		return nil
	})
}

// Commands that act on objects take several, by name or by label, as kubectl does.
func TestPluginActsOnSelectedObjects(t *testing.T) {
	namespace, other := newNamespace(t), newNamespace(t)
	for _, name := range []string{"a", "b", "c"} {
		newMemcached(t, namespace, name, 1)
	}
	newMemcached(t, other, "a", 1)
	for _, c := range []client.ObjectKey{{Namespace: namespace, Name: "a"}, {Namespace: namespace, Name: "b"}, {Namespace: other, Name: "a"}} {
		m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
		must(t, api.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"`+namespace+`"}}}`))))
	}
	selector := "team=" + namespace
	if said := expect(t, namespace, 0, []string{"memcached/a", "memcached/b"}, "status", "-l", selector); strings.Contains(said, "memcached/c") {
		t.Errorf("c has no such label:\n%s", said)
	}
	expect(t, namespace, 0, []string{"memcached/a paused", "memcached/b paused"}, "pause", "memcached", "-l", selector)
	expect(t, namespace, 0, []string{"memcached/a in " + other + " paused"}, "pause", "memcached", "-l", selector, "-A")
	expect(t, namespace, 0, []string{"memcached/a resumed", "memcached/c resumed"}, "resume", "memcached/a", "memcached/c")
	expect(t, namespace, 0, []string{"No object has the labels team=none"}, "pause", "memcached", "-l", "team=none")
	expect(t, namespace, 1, []string{"--selector team=( cannot be read"}, "status", "-l", "team=(")
	expect(t, namespace, 1, []string{"--all-namespaces needs --selector"}, "pause", "memcached/a", "-A")
	expect(t, namespace, 1, []string{"name cannot be provided when a selector is specified"}, "pause", "memcached", "a", "-l", selector)
	expect(t, namespace, 1, []string{"is not run by Governor"}, "pause", "memcached/a", "namespace/"+namespace)
	expect(t, namespace, 1, []string{"no name was specified"}, "pause", "memcached")
}

// Templates of kubectl work on the fields that -o json prints.
func TestPluginFillsTemplates(t *testing.T) {
	namespace := previews(t, 1).namespace
	newMemcached(t, namespace, "m", 2)
	reaches(t, namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
	for format, want := range map[string]string{
		`jsonpath={range [*]}{.object}={.reason}{"\n"}{end}`:   "memcached/m=RollingOut\n",
		`jsonpath=[0].object`:                                  "memcached/m",
		`go-template={{range .}}{{.object}} {{.ready}}{{end}}`: "memcached/m False",
	} {
		if said, code := plugin(t, namespace, "status", "memcached", "-o", format); said != want || code != 0 {
			t.Errorf("%s: %q, exit code %d; want %q", format, said, code, want)
		}
	}
	expect(t, namespace, 1, []string{"cannot be read"}, "status", "-o", "jsonpath={.a")
	expect(t, namespace, 1, []string{"-o jsonn is not known: use text, json, yaml, jsonpath=TEMPLATE"}, "status", "-o", "jsonn")
}

// The plugin lists a fleet, with one request per kind.
func TestPluginListsAFleet(t *testing.T) {
	namespace := newNamespace(t)
	for i := range 500 {
		newMemcached(t, namespace, fmt.Sprintf("m%03d", i), 1)
	}
	best := time.Hour
	for range 5 {
		began := time.Now()
		said := expect(t, namespace, 0, []string{"memcached/m000", "memcached/m499", "NotSeen"}, "status")
		best = min(best, time.Since(began))
		if n := strings.Count(said, "memcached/"); n != 500 {
			t.Fatalf("%d objects are listed", n)
		}
	}
	t.Logf("500 objects are listed in %s", best)
}
