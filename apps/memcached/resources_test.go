package memcached_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
)

var update = flag.Bool("update", false, "write the golden files")

// A change of the pod template in these files restarts the caches of every user that
// upgrades the operator. Do not update them without that intention.
func TestResources(t *testing.T) {
	cases := map[string]func(*cachev1.Memcached){
		"plain": func(*cachev1.Memcached) {},
		"full": func(m *cachev1.Memcached) {
			memory := resource.MustParse("1Gi")
			m.Spec.Version, m.Spec.Memory, m.Spec.ContainerPort = "1.6.38", &memory, 211
			m.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
			m.Spec.Pod = cachev1.PodSettings{
				Labels:            map[string]string{"team": "a", "app.kubernetes.io/instance": "not-yours"},
				Annotations:       map[string]string{"example.com/a": "b"},
				NodeSelector:      map[string]string{"disk": "fast"},
				Tolerations:       []corev1.Toleration{{Key: "cache", Operator: corev1.TolerationOpExists}},
				PriorityClassName: "high",
				ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "registry"}},
			}
		},
		"keeps-image": func(m *cachev1.Memcached) { m.Status.DefaultImage = "docker.io/library/memcached:1.6.9" },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			want := instance(3)
			edit(want)
			golden(t, name, render(t, want))
		})
	}
}

func render(t *testing.T, want *cachev1.Memcached) string {
	t.Helper()
	objects, err := memcached.Planner{}.Resources(want, memcached.World{})
	if err != nil {
		t.Fatal(err)
	}
	var docs []string
	for _, obj := range objects {
		raw, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(raw))
	}
	return strings.Join(docs, "---\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-update writes it): %s", path, diff)
	}
}

func TestMemoryLeavesHeadroom(t *testing.T) {
	cases := map[string]struct{ reason, memory, want string }{
		"Least":   {"the minimum memory has half of it as headroom", "64Mi", "--memory-limit=32"},
		"Default": {"the minimum headroom applies up to 128Mi", "128Mi", "--memory-limit=96"},
		"Large":   {"a larger limit has a quarter as headroom", "4Gi", "--memory-limit=3072"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := instance(1)
			memory := resource.MustParse(c.memory)
			want.Spec.Memory = &memory
			if got := render(t, want); !strings.Contains(got, c.want) {
				t.Errorf("%s: want %s in %s", c.reason, c.want, got)
			}
		})
	}
}
