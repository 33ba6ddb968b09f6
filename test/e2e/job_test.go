package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/observe"
	"github.com/governor-dev/governor/lifecycle/job"
)

type jobCase struct {
	reason  string
	script  string
	image   string
	options job.Options
	quota   bool
	want    job.State
}

// Kubernetes says of real Jobs what package observe expects: how they end, the last words of
// their pods, and why they cannot begin.
func TestJobContract(t *testing.T) {
	hurt(t, "image", "build", "busybox", "--load")
	cases := map[string]jobCase{
		"succeeds": {"the work is done", "echo fine", "", job.Options{TTL: time.Hour}, false, job.State{Phase: job.PhaseSucceeded}},
		"fails": {"the last log line is the last word", "echo begin; echo no disk; exit 3", "", job.Options{}, false,
			job.State{Phase: job.PhaseFailed, Reason: "BackoffLimitExceeded", LastWords: "no disk"}},
		"retried": {"Kubernetes retries", "echo no disk; exit 3", "", job.Options{Retries: 6}, false,
			job.State{Phase: job.PhaseRunning, LastWords: "no disk"}},
		"late":    {"its deadline passes", "sleep 600", "", job.Options{Deadline: 5 * time.Second}, false, job.State{Phase: job.PhaseFailed, Reason: job.ReasonDeadlineExceeded}},
		"runs":    {"it takes its time", "sleep 600", "", job.Options{}, false, job.State{Phase: job.PhaseRunning, HasPod: true}},
		"missing": {"its image does not exist", "true", "docker.io/library/none:1", job.Options{}, false, job.State{Phase: job.PhasePending, HasPod: true, Reason: "ImagePullBackOff"}},
		"refused": {"a quota refuses its pod", "true", "", job.Options{}, true, job.State{Phase: job.PhasePending, Reason: job.ReasonQuotaExceeded}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t, name)
		})
	}
}

func (c jobCase) run(t *testing.T, name string) {
	t.Helper()
	ns := newNamespace(t)
	create := func(obj client.Object) {
		t.Helper()
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if c.quota {
		none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		create(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
		})
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "o"}}
	create(owner)
	image := "docker.io/library/busybox:1.35.0"
	if c.image != "" {
		image = c.image
	}
	pod := corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(0)),
		Containers:                    []corev1.Container{{Name: "work", Image: image, Command: []string{"sh", "-c", c.script}}},
	}
	key := job.Name(name, c.script)
	if err := apply.Object(t.Context(), api, api, owner, job.New("jobs", owner.Name, key, pod, c.options)); err != nil {
		t.Fatal(err)
	}
	eventually(t, c.reason, func(ctx context.Context) error {
		s, err := observe.Job(ctx, api, api, owner, key, time.Now())
		if err != nil {
			return err
		}
		got := job.State{Phase: s.Phase, Reason: s.Reason, LastWords: s.LastWords, HasPod: s.HasPod && c.want.HasPod}
		if got != c.want || s.Reason != "" && s.Detail == "" {
			return fmt.Errorf("it is %+v, want %+v", s, c.want)
		}
		return nil
	})
}
