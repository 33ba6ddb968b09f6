package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
)

// category is the category of all kinds that Governor runs, and of its policy kinds.
const category = "governor"

// kind is a kind that Governor runs.
type kind struct {
	schema.GroupVersionResource

	short []string
}

// governed returns the kinds that Governor runs in this cluster. As in kubectl
// api-resources, fresh ignores the discovery cache of this machine, which may lack a
// new kind.
func (s *session) governed(fresh bool) ([]kind, error) {
	discovery, err := s.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	if fresh {
		discovery.Invalidate()
	}
	lists, err := discovery.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return nil, err
	}
	var all []kind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == v1alpha1.GroupVersion.Group {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Categories, category) {
				all = append(all, kind{gv.WithResource(r.Name), append(r.ShortNames, r.SingularName)})
			}
		}
	}
	return all, nil
}

// runs reports whether Governor runs objects of this resource.
func (s *session) runs(what schema.GroupResource) (bool, error) {
	for _, fresh := range []bool{false, true} {
		kinds, err := s.governed(fresh)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(kinds, func(k kind) bool { return k.GroupResource() == what }) {
			return true, nil
		}
	}
	return false, nil
}

// mustRun returns an error if Governor does not run the object.
func (s *session) mustRun(t *target) error {
	ok, err := s.runs(t.mapping.Resource.GroupResource())
	if err != nil || ok {
		return err
	}
	return fmt.Errorf("%s is not run by Governor; %s", t, s.kindsHere())
}

// withKinds adds the known kinds to the error about an unknown type.
func (s *session) withKinds(err error) error {
	if !strings.Contains(err.Error(), "the server doesn't have a resource type") {
		return err
	}
	return fmt.Errorf("%w; %s", err, s.kindsHere())
}

// kindsHere lists the kinds that Governor runs here.
func (s *session) kindsHere() string {
	kinds, err := s.governed(false)
	if err != nil || len(kinds) == 0 {
		return "see kubectl api-resources --categories=" + category
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Resource
	}
	return "Governor runs: " + strings.Join(names, ", ")
}
