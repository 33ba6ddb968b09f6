package memcached

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
)

// Warnings returns warnings about legal declarations with a surprising effect.
func (Planner) Warnings(old, want *cachev1.Memcached) []string {
	var warnings []string
	for _, warn := range []func(old, want *cachev1.Memcached) string{
		noServer, singleServer, unpinnedImage, everyServerReplaced,
	} {
		if s := warn(old, want); s != "" {
			warnings = append(warnings, s)
		}
	}
	return warnings
}

func sizeChanged(old, want *cachev1.Memcached) bool {
	return old == nil || old.Spec.Size != want.Spec.Size
}

func noServer(old, want *cachev1.Memcached) string {
	if want.Spec.Size != 0 || !sizeChanged(old, want) {
		return ""
	}
	lost := ""
	if old != nil {
		lost = " The cached data is lost."
	}
	return "spec.size is 0: no server runs and the Service has no addresses." + lost + " Set spec.size to 1 or more to have a cache."
}

func singleServer(old, want *cachev1.Memcached) string {
	if want.Spec.Size != 1 || !sizeChanged(old, want) {
		return ""
	}
	return "spec.size is 1: if this server or its node fails, the cache is empty and the backend takes the " +
		"full load. Set spec.size to 2 or more to lose only a part of the cache."
}

func unpinnedImage(old, want *cachev1.Memcached) string {
	image := want.Spec.Image
	if image == "" || pinned(image) || old != nil && old.Spec.Image == image {
		return ""
	}
	return "spec.image has no fixed tag, so servers started at different times may run different versions. " +
		"Name a tag other than latest, or a digest, or set spec.version instead."
}

// pinned reports whether the image has a digest, or a tag other than latest.
func pinned(image string) bool {
	if strings.Contains(image, "@") {
		return true
	}
	t := lifecycle.ImageTag(image)
	return t != "" && t != "latest"
}

// everyServerReplaced compares the rendered pod templates: only a different template makes
// Kubernetes replace the pods.
func everyServerReplaced(old, want *cachev1.Memcached) string {
	if old == nil || old.Spec.Size == 0 || want.Spec.Size == 0 {
		return ""
	}
	if equality.Semantic.DeepEqual(template(old), template(want)) {
		return ""
	}
	when := ""
	if want.Spec.Paused {
		when = ", once spec.paused is false,"
	}
	return fmt.Sprintf("A change of %s%s replaces all servers (%d), and new ones start empty. "+
		"Expect misses until they are warm again: choose a quiet time.",
		strings.Join(changedTemplateFields(old, want), ", "), when, old.Spec.Size)
}

// changedTemplateFields returns the changed fields that are part of the pod template.
func changedTemplateFields(old, want *cachev1.Memcached) []string {
	was, is := old.Spec, want.Spec
	memoryWas, memoryIs := memoryLimit(old), memoryLimit(want)
	var fields []string
	for _, f := range []struct {
		name    string
		changed bool
	}{
		{"spec.image", was.Image != is.Image},
		{"spec.version", was.Version != is.Version},
		{"spec.containerPort", was.ContainerPort != is.ContainerPort},
		{"spec.memory", memoryWas.Cmp(memoryIs) != 0},
		{"spec.resources", !equality.Semantic.DeepEqual(was.Resources, is.Resources)},
		{"spec.pod", !equality.Semantic.DeepEqual(was.Pod, is.Pod)},
	} {
		if f.changed {
			fields = append(fields, f.name)
		}
	}
	return fields
}
