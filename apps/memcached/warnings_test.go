package memcached_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
)

// edited returns an instance of the size with the edits.
func edited(size int32, edits ...func(*cachev1.Memcached)) *cachev1.Memcached {
	m := instance(size)
	for _, edit := range edits {
		edit(m)
	}
	return m
}

func withImage(image string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) { m.Spec.Image = image }
}

func withVersion(version string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) { m.Spec.Version = version }
}

func withPort(m *cachev1.Memcached) { m.Spec.ContainerPort = 1 }

func withMemory(memory string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) { m.Spec.Memory = new(resource.MustParse(memory)) }
}

func withCPU(cpu string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) {
		m.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func withZone(zone string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) { m.Spec.Pod.NodeSelector = map[string]string{"zone": zone} }
}

func paused(m *cachev1.Memcached) { m.Spec.Paused = true }

func TestWarnings(t *testing.T) {
	const one, none, loose, replaced = "spec.size is 1", "spec.size is 0", "no fixed tag", "replaces all servers"
	const pinned, digest = "registry.example.com:5000/memcached:1.6.38", "memcached@sha256:0123"
	cases := map[string]struct {
		reason    string
		old, want *cachev1.Memcached
		warnings  []string
	}{
		"Whole":        {"no warning", nil, edited(3), nil},
		"One":          {"the loss of one server empties the cache", nil, edited(1), []string{one, "2 or more"}},
		"ToOne":        {"a scale-in to one server warns", edited(3), edited(1), []string{one}},
		"StillOne":     {"an unchanged size does not warn again", edited(1), edited(1, paused), nil},
		"None":         {"no server runs", nil, edited(0), []string{none, "1 or more"}},
		"ToNone":       {"the cached data is lost", edited(3), edited(0), []string{none, "cached data is lost"}},
		"StillNone":    {"an unchanged size does not warn again", edited(0), edited(0, withPort), nil},
		"NoTag":        {"an image without a tag may change", nil, edited(2, withImage("registry.example.com:5000/memcached")), []string{loose}},
		"Latest":       {"the tag latest may change", nil, edited(2, withImage("memcached:latest")), []string{loose, "digest"}},
		"Tag":          {"a release tag does not change", nil, edited(2, withImage(pinned)), nil},
		"Digest":       {"a digest cannot change", nil, edited(2, withImage(digest)), nil},
		"StillLatest":  {"an unchanged image does not warn again", edited(2, withImage("memcached")), edited(3, withImage("memcached")), nil},
		"Image":        {"pods are replaced", edited(3, withImage(pinned)), edited(3, withImage(digest)), []string{replaced, "of spec.image replaces", "(3)"}},
		"LooseImage":   {"two problems give two warnings", edited(3), edited(3, withImage("memcached")), []string{loose, replaced}},
		"Version":      {"pods are replaced", edited(3), edited(3, withVersion("1.6.38")), []string{replaced, "of spec.version replaces"}},
		"SameVersion":  {"the default version by name is no change", edited(3), edited(3, withVersion("1.6.18")), nil},
		"Port":         {"pods are replaced", edited(3), edited(3, withPort), []string{replaced, "spec.containerPort"}},
		"Memory":       {"pods are replaced", edited(3), edited(3, withMemory("1Gi")), []string{replaced, "spec.memory"}},
		"SameMemory":   {"the default memory by value is no change", edited(3), edited(3, withMemory("128Mi")), nil},
		"Resources":    {"pods are replaced", edited(3), edited(3, withCPU("1")), []string{replaced, "spec.resources"}},
		"Pod":          {"pods are replaced", edited(3), edited(3, withZone("a")), []string{replaced, "spec.pod"}},
		"Several":      {"all reasons are named", edited(3), edited(3, withPort, withMemory("1Gi")), []string{"of spec.containerPort, spec.memory replaces"}},
		"Everything":   {"the longest warning is short enough", edited(500), edited(500, withImage(pinned), withVersion("1.6.38"), withPort, withMemory("1Gi"), withCPU("1"), withZone("a"), paused), []string{replaced}},
		"Grow":         {"existing pods are not replaced", edited(3), edited(4), nil},
		"GrowAndPort":  {"existing pods are replaced", edited(3), edited(4, withPort), []string{"(3)"}},
		"FromNone":     {"no pod existed", edited(0), edited(3, withPort), nil},
		"WhilePaused":  {"pods are replaced after the pause", edited(3), edited(3, withPort, paused), []string{"once spec.paused is false"}},
		"OnlyPaused":   {"pausing replaces nothing", edited(3), edited(3, paused), nil},
		"KeepsDefault": {"the image chosen at creation stays", edited(3, chosen), edited(3, chosen), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			checkWarnings(t, c.reason, memcached.Planner{}.Warnings(c.old, c.want), c.warnings)
		})
	}
}

func chosen(m *cachev1.Memcached) { m.Status.DefaultImage = "docker.io/library/memcached:1.6.9" }

func checkWarnings(t *testing.T, reason string, got, want []string) {
	t.Helper()
	all := strings.Join(got, "\n")
	if len(want) == 0 && all != "" {
		t.Errorf("%s: got %q, want no warning", reason, all)
	}
	for _, words := range want {
		if !strings.Contains(all, words) {
			t.Errorf("%s: got %q, want %q in it", reason, all, words)
		}
	}
	for _, s := range got {
		if len(s) > 256 || !strings.HasSuffix(s, ".") {
			t.Errorf("%d characters: %q", len(s), s)
		}
	}
}
