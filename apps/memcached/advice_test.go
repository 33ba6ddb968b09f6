package memcached_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/lifecycle"
)

var _ lifecycle.Warner[*cachev1.Memcached] = memcached.Planner{}

// edited is an instance of the size with the edits.
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

func TestAdvise(t *testing.T) {
	const one, none, loose, replaced = "spec.size is 1", "spec.size is 0", "no fixed tag", "replaces all servers"
	const pinned, digest = "registry.example.com:5000/memcached:1.6.38", "memcached@sha256:0123"
	cases := map[string]struct {
		reason    string
		old, want *cachev1.Memcached
		says      []string
	}{
		"Whole":        {"nothing surprises", nil, edited(3), nil},
		"One":          {"its loss empties the cache", nil, edited(1), []string{one, "2 or more"}},
		"ToOne":        {"so it does after a change", edited(3), edited(1), []string{one}},
		"StillOne":     {"but it was said before", edited(1), edited(1, paused), nil},
		"None":         {"nobody can use it", nil, edited(0), []string{none, "1 or more"}},
		"ToNone":       {"and what was in it goes", edited(3), edited(0), []string{none, "held is lost"}},
		"StillNone":    {"that was said before", edited(0), edited(0, withPort), nil},
		"NoTag":        {"the registry's default moves", nil, edited(2, withImage("registry.example.com:5000/memcached")), []string{loose}},
		"Latest":       {"so does latest", nil, edited(2, withImage("memcached:latest")), []string{loose, "digest"}},
		"Tag":          {"a release stays", nil, edited(2, withImage(pinned)), nil},
		"Digest":       {"a digest cannot move", nil, edited(2, withImage(digest)), nil},
		"StillLatest":  {"that was said before", edited(2, withImage("memcached")), edited(3, withImage("memcached")), nil},
		"Image":        {"pods are replaced", edited(3, withImage(pinned)), edited(3, withImage(digest)), []string{replaced, "of spec.image replaces", "(3)"}},
		"LooseImage":   {"two advices for two surprises", edited(3), edited(3, withImage("memcached")), []string{loose, replaced}},
		"Version":      {"pods are replaced", edited(3), edited(3, withVersion("1.6.38")), []string{replaced, "of spec.version replaces"}},
		"SameVersion":  {"the default by its name is no change", edited(3), edited(3, withVersion("1.6.18")), nil},
		"Port":         {"pods are replaced", edited(3), edited(3, withPort), []string{replaced, "spec.containerPort"}},
		"Memory":       {"pods are replaced", edited(3), edited(3, withMemory("1Gi")), []string{replaced, "spec.memory"}},
		"SameMemory":   {"the default by its value is no change", edited(3), edited(3, withMemory("128Mi")), nil},
		"Resources":    {"pods are replaced", edited(3), edited(3, withCPU("1")), []string{replaced, "spec.resources"}},
		"Pod":          {"pods are replaced", edited(3), edited(3, withZone("a")), []string{replaced, "spec.pod"}},
		"Several":      {"all reasons are named", edited(3), edited(3, withPort, withMemory("1Gi")), []string{"of spec.containerPort, spec.memory replaces"}},
		"Everything":   {"even the longest advice is short enough", edited(500), edited(500, withImage(pinned), withVersion("1.6.38"), withPort, withMemory("1Gi"), withCPU("1"), withZone("a"), paused), []string{replaced}},
		"Grow":         {"the others stay as they are", edited(3), edited(4), nil},
		"GrowAndPort":  {"those that were there are replaced", edited(3), edited(4, withPort), []string{"(3)"}},
		"FromNone":     {"nothing was there to be emptied", edited(0), edited(3, withPort), nil},
		"WhilePaused":  {"nothing happens before it is resumed", edited(3), edited(3, withPort, paused), []string{"once spec.paused is false"}},
		"OnlyPaused":   {"pausing replaces nothing", edited(3), edited(3, paused), nil},
		"KeepsDefault": {"the image chosen at creation stays", edited(3, chosen), edited(3, chosen), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { advises(t, c.reason, memcached.Planner{}.Warnings(c.old, c.want), c.says) })
	}
}

func chosen(m *cachev1.Memcached) { m.Status.DefaultImage = "docker.io/library/memcached:1.6.9" }

func advises(t *testing.T, reason string, said, want []string) {
	t.Helper()
	all := strings.Join(said, "\n")
	if len(want) == 0 && all != "" {
		t.Errorf("%s: got %q, want silence", reason, all)
	}
	for _, words := range want {
		if !strings.Contains(all, words) {
			t.Errorf("%s: got %q, want %q in it", reason, all, words)
		}
	}
	for _, s := range said {
		if len(s) > 256 || !strings.HasSuffix(s, ".") {
			t.Errorf("%d characters: %q", len(s), s)
		}
	}
}
