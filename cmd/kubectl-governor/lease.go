package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// skew is how far the clock of this machine may differ from the operator's.
const skew = 30 * time.Second

var leaseKind = coordinationv1.SchemeGroupVersion.WithResource("leases")

// warnOfAbsence warns on standard error if an operator that wrote the status of the objects does not run, because the
// status is then out of date. It does not warn if that is unknown, for example if the user may not read the lease.
func (s *session) warnOfAbsence(ctx context.Context, client dynamic.Interface, objects ...*unstructured.Unstructured) {
	for _, operator := range operators(objects) {
		if why := s.absence(ctx, client, operator); why != "" {
			_, _ = fmt.Fprintf(s.ErrOut, "The operator %s does not run: %s Its last report follows.\n", operator, why)
		}
	}
}

// operators returns the field managers of the objects' statuses, which are the names of the operators.
func operators(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, obj := range objects {
		for _, e := range obj.GetManagedFields() {
			if e.Subresource == "status" && !slices.Contains(names, e.Manager) {
				names = append(names, e.Manager)
			}
		}
	}
	slices.Sort(names)
	return names
}

// absence returns why the operator does not run, or "". The lease has the name and namespace of the install. If the
// operator is in another namespace, absence searches all namespaces, if the user may list leases.
func (s *session) absence(ctx context.Context, client dynamic.Interface, operator string) string {
	name := operator + ".governor.dev"
	found, err := client.Resource(leaseKind).Namespace(operator+"-system").Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.elsewhere(ctx, client, operator, name)
	}
	if err != nil {
		return ""
	}
	return s.lapse(found)
}

func (s *session) elsewhere(ctx context.Context, client dynamic.Interface, operator, name string) string {
	all, faults := fetch(ctx, client, []source{named(leaseKind, metav1.NamespaceAll, name)})
	switch {
	case faults[0] != nil:
		return ""
	case len(all[0]) > 0:
		return s.lapse(all[0][0])
	case operator != "governor":
		return "" // a manager that is no operator
	}
	return fmt.Sprintf("no namespace has its lease %s. (An operator with --leader-elect=false has no lease.)", name)
}

// lapse returns why the lease is not held, or "".
func (s *session) lapse(found *unstructured.Unstructured) string {
	var lease coordinationv1.Lease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &lease); err != nil {
		return ""
	}
	at, spec := lease.Namespace+"/"+lease.Name, lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return fmt.Sprintf("no replica holds its lease %s.", at)
	}
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return ""
	}
	age := s.now().Sub(spec.RenewTime.Time)
	if age <= time.Duration(*spec.LeaseDurationSeconds)*time.Second+skew {
		return ""
	}
	return fmt.Sprintf("its lease %s was last renewed at %s, by %s.", at, moment(spec.RenewTime.Time), *spec.HolderIdentity)
}
