package envtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

func TestPluginListsMembers(t *testing.T) {
	a := previews(t, 3)
	eventually(t, "the status has the members", func() error {
		if said, _ := plugin(t, a.namespace, "members", "ring/r", "-o", "name"); said != "m000000\nm000001\nm000002\n" {
			return errors.New(said)
		}
		return nil
	})
	expect(t, a.namespace, 0, []string{"NAME", "m000002"}, "members", "rings", "r")
	newMemcached(t, a.namespace, "m", 2)
	expect(t, a.namespace, 0, []string{"memcached/m has no members."}, "members", "memcached/m")
	playKubernetes(t, a.namespace, "m")
	expect(t, a.namespace, 0, []string{"NAME   HEALTH   VERSION", "m-b    Ready    1.6.18", "m-c "}, "members", "memcached/m")
	said := expect(t, a.namespace, 0, nil, "members", "memcached/m", "-o", "json")
	var all []map[string]any
	if err := json.Unmarshal([]byte(said), &all); err != nil || len(all) != 2 || all[0]["health"] != "Ready" {
		t.Errorf("%v: %s", err, said)
	}
}

func TestPluginPrintsEvents(t *testing.T) {
	a := previews(t, 1)
	eventually(t, "there is an event", func() error {
		if said, _ := plugin(t, a.namespace, "events", "ring/r"); !strings.Contains(said, "Normal  LearnerCaughtUp") && !strings.Contains(said, "Normal  TooFewMembers") {
			return errors.New(said)
		}
		return nil
	})
	newMemcached(t, a.namespace, "m", 1)
	playKubernetes(t, a.namespace, "m")
	pod, err := get(t, &corev1.Pod{}, a.namespace, "m-c")
	must(t, err)
	must(t, api.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "pulled"}, Reason: "Pulled", Message: "It was pulled.", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: a.namespace, Name: pod.Name, UID: pod.UID}, LastTimestamp: metav1.Now(),
	}))
	expect(t, a.namespace, 0, []string{"Pulled  pod/m-c  It was pulled."}, "events", "memcached", "m", "--members")
	if said, _ := plugin(t, a.namespace, "events", "memcached", "m"); strings.Contains(said, "Pulled") {
		t.Errorf("pods were not asked for:\n%s", said)
	}
}

// following runs the plugin until the test ends, and returns its lines as they come.
func following(t *testing.T, namespace string, args ...string) <-chan string {
	t.Helper()
	dir, err := built()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "kubectl-governor"), append([]string{"-n", namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan string, 100)
	var read sync.WaitGroup
	read.Go(func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		_, _ = io.Copy(io.Discard, out)
	})
	t.Cleanup(func() {
		cancel()
		read.Wait()
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("a user who has seen enough hears %v", err)
		}
	})
	return lines
}

// hears waits for a line with all of the words.
func hears(t *testing.T, lines <-chan string, words ...string) {
	t.Helper()
	var heard []string
	eventually(t, fmt.Sprintf("it says %q", words), func() error {
		for {
			select {
			case line := <-lines:
				heard = append(heard, line)
				if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
					return nil
				}
			default:
				return fmt.Errorf("it says %q", heard)
			}
		}
	})
}

// The plugin prints each event once, as it happens, and sends no repeated requests.
func TestPluginFollows(t *testing.T) {
	a := previews(t, 1)
	list := following(t, a.namespace, "status", "-w")
	tree := following(t, a.namespace, "status", "ring", "r", "-w")
	events := following(t, a.namespace, "events", "ring/r", "-w")
	hears(t, list, "ring/r", "True")
	hears(t, tree, "ring/r in", "ready")
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Mood = "fail" })
	hears(t, list, "ring/r", "False", "CannotRender")
	hears(t, tree, "not ready, CannotRender")
	resize(t, a.namespace, "r", func(s *fakeapp.Spec) { s.Size, s.Mood = 3, "" })
	hears(t, tree, "last step: Promote m000002")
	hears(t, list, "ring/r", "True")
	hears(t, events, "Promote m000002")
	newRing(t, a.namespace, "other", 1)
	hears(t, list, "ring/other", "True")
	must(t, api.Delete(t.Context(), &fakeapp.Ring{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "r"}}))
	hears(t, list, "ring/r was deleted")
	hears(t, tree, "It was deleted.")
	select {
	case line := <-list:
		t.Errorf("nothing happened, and it says %q", line)
	default:
	}
}

func TestPluginLists(t *testing.T) {
	a := previews(t, 1)
	newMemcached(t, a.namespace, "m", 2)
	eventually(t, "both are listed", func() error {
		said, _ := plugin(t, a.namespace, "status", "-o", "name")
		if said != "memcached.cache.example.com/m\nring.ring.test.governor.dev/r\n" {
			return errors.New(said)
		}
		return nil
	})
	if said := expect(t, a.namespace, 0, []string{"ring/r"}, "status", "rings", "-o", "wide"); strings.Contains(said, "memcached") || !strings.Contains(said, "VERSION") {
		t.Errorf("rings were asked for:\n%s", said)
	}
	reaches(t, a.namespace, "m", lifecycle.ConditionReady, metav1.ConditionFalse, "RollingOut")
	expect(t, a.namespace, 0, []string{"m  has no pod", "under way; not ready since"}, "status", "memcached/m")
	playKubernetes(t, a.namespace, "m")
	reaches(t, a.namespace, "m", lifecycle.ConditionReady, metav1.ConditionTrue, "AllAnswer")
	expect(t, a.namespace, 0, []string{"memcached/m in " + a.namespace + ": ready. All 2 servers answer.", "─ pod", "Ready  1.6.18"}, "status", "memcached/m")
	expect(t, a.namespace, 0, []string{`"members": [`, `"membersReady": "2/2"`}, "status", "memcached/m", "-o", "json")
	expect(t, a.namespace, 1, []string{`"nothings" is not a type that Governor runs; Governor runs:`, "rings"}, "status", "nothings")
	expect(t, "nonexistent", 1, []string{`there is no namespace "nonexistent"`}, "status")
	expect(t, "default", 0, []string{"Governor runs no objects here."}, "status")
	expect(t, a.namespace, 1, []string{"--watch does not support -o json"}, "status", "-w", "-o", "json")
	expect(t, a.namespace, 1, []string{"configmap/r is not run by Governor; Governor runs:"}, "history", "configmap/r")
	expect(t, a.namespace, 1, []string{`"nothings"; Governor runs:`}, "history", "nothings/r")
}

// Types, names, namespaces and formats have shell completion.
func TestPluginCompletes(t *testing.T) {
	a := previews(t, 1)
	for words, want := range map[string][]string{
		"status |":           {"rings", "rings/r", "memcacheds"},
		"plan ring|":         {"rings", "rings/r"},
		"history rings/|":    {"rings/r"},
		"members Ring |":     {"r"},
		"approve ring r |":   nil,
		"members -o |":       {"wide", "json", "yaml", "name"},
		"why -n kube-|":      {"kube-system"},
		"history --result |": {"Succeeded", "Failed", "Refused"},
		"|":                  {"approve", "events", "status"},
	} {
		args := strings.Split(strings.TrimSuffix(words, "|"), " ")
		said, code := plugin(t, a.namespace, append([]string{"__complete", "-n", a.namespace}, args...)...)
		got := strings.Fields(said)
		for _, word := range want {
			if !slices.Contains(got, word) {
				t.Errorf("%q is completed to %q, %s is not among them", words, said, word)
			}
		}
		if code != 0 || want == nil && got[0] != ":4" {
			t.Errorf("%q: exit %d, %q", words, code, said)
		}
	}
}
