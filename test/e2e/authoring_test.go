package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/governor-dev/governor/test/docstest"
)

// terminal is where an author works on a project: a kubeconfig with a namespace of their own, and localkube in the PATH.
func terminal(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kubectl("--kubeconfig", config, "config", "set-context", "--current", "--namespace", newNamespace(t)); err != nil {
		t.Fatal(err)
	}
	return []string{
		"KUBECONFIG=" + config, "LOCALKUBE=" + localkube[0], "LOCALKUBE_FLAGS=" + strings.Join(localkube[1:], " "),
		"PATH=" + filepath.Dir(localkube[0]) + ":" + os.Getenv("PATH"),
	}
}

// removed deletes the operator of another project at the end of the test.
func removed(t *testing.T, manifest string) {
	t.Cleanup(func() {
		if _, err := kubectl("delete", "--ignore-not-found", "--timeout=5m", "-f", manifest); err != nil {
			t.Error(err)
		}
	})
}

// The guide for authors from an empty directory to an upgrade, on a cluster.
func TestAuthoringGuide(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	hurt(t, "image", "build", "busybox", "--load")
	r := docstest.NewReader(t, root)
	r.Cluster, r.Env = true, terminal(t)
	for _, page := range docstest.ProjectPages {
		blocks, err := docstest.Read(filepath.Join(root, "docs/authoring", page))
		if err != nil {
			t.Fatal(err)
		}
		r.Follow(t, blocks)
	}
}

// factory is the chocolate factory, installed as its README says.
type factory struct{ env []string }

func (f factory) run(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -e -o pipefail\n"+script)
	cmd.Dir, cmd.Env = "../../examples/chocolate-factory", append(os.Environ(), f.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// fault makes the machine fail; {} ends the fault.
func (f factory) fault(t *testing.T, what string) {
	t.Helper()
	f.run(t, fmt.Sprintf(`ns=$(kubectl config view --minify -o jsonpath={..namespace})
echo '%s' | kubectl replace --raw /api/v1/namespaces/$ns/services/chocolate-machine:8080/proxy/faults -f -`, what))
}

func (f factory) candy(t *testing.T, name, flavor string) {
	t.Helper()
	f.run(t, fmt.Sprintf(`kubectl apply -f - <<END
{apiVersion: awesome.corp.com/v1, kind: Candy, metadata: {name: %s}, spec: {flavor: %s}}
END`, name, flavor))
}

// shows waits until kubectl get cn prints the columns for the candy, where "*" is any value.
func (f factory) shows(t *testing.T, name, columns string) {
	t.Helper()
	eventually(t, fmt.Sprintf("kubectl get cn shows %s with %s", name, columns), func(context.Context) error {
		said := f.run(t, "kubectl get cn "+name+" --no-headers")
		is, want := strings.Fields(said), strings.Fields(columns)
		for i, column := range want {
			if i+1 >= len(is) || column != "*" && column != is[i+1] {
				return fmt.Errorf("%w: %s", errNotYet, said)
			}
		}
		return nil
	})
}

// field returns a field of the candy by JSON path.
func (f factory) field(t *testing.T, name, path string) string {
	t.Helper()
	return f.run(t, fmt.Sprintf("kubectl get cn %s -o jsonpath='%s'", name, path))
}

// A system outside of Kubernetes: Governor measures its products and disposes of wrong ones, but of none while the
// machine is silent. A machine that stays silent does not block a deletion.
func TestChocolateFactory(t *testing.T) {
	t.Parallel()
	f := factory{terminal(t)}
	removed(t, "../../examples/chocolate-factory/install.yaml")
	blocks, err := docstest.Read("../../examples/chocolate-factory/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Language == "sh" && b.Has("cluster") {
			t.Logf("%s\n%s", b.Text, f.run(t, b.Text))
		}
	}
	f.shows(t, "chocolate", "True Delivered sweeeeeeet chocolate-machine 640 * 1 0")
	var sweetness int
	if _, err := fmt.Sscan(f.field(t, "chocolate", "{.status.sweetness.value}"), &sweetness); err != nil || sweetness < 620 || sweetness > 660 {
		t.Errorf("what was delivered has %d mg/g, %v", sweetness, err)
	}

	f.fault(t, `{"wrongBatch": 70}`)
	f.candy(t, "bitter", "bitter")
	f.shows(t, "bitter", "False TooManyBadBars bitter chocolate-machine 100 * 3 3")

	// A bad bar is on the belt when the machine falls silent.
	f.fault(t, `{"wrongBatch": 70, "slowMilliseconds": 20000}`)
	f.candy(t, "late", "sweeeet")
	eventually(t, "a bar is being made", func(context.Context) error {
		if made := f.field(t, "late", "{.status.bars.made}"); made != "1" {
			return fmt.Errorf("%w: %q", errNotYet, made)
		}
		return nil
	})
	f.fault(t, `{"down": true}`)
	eventually(t, "the status reports that nothing is known", func(context.Context) error {
		if answers := f.field(t, "late", `{.status.conditions[?(@.type=="MachineAnswers")].status}`); answers != "Unknown" {
			return fmt.Errorf("%w: MachineAnswers is %q", errNotYet, answers)
		}
		return nil
	})
	if made := f.field(t, "late", "{.status.bars.made} {.status.bars.disposed}"); strings.TrimSpace(made) != "1 0" && made != "1" {
		t.Errorf("bars made and disposed of by a machine that is silent: %q", made)
	}
	f.run(t, "kubectl delete cn --all --timeout=5m")
}
