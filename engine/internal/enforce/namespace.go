package enforce

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamespaceTerminates reports whether the namespace is being deleted; not if that cannot be told. It is
// asked with a right that every operator has: a dry run of making what keeps a history.
func (k *Kind) NamespaceTerminates(ctx context.Context, namespace string) bool {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "governor-probe-"}}
	err := k.Client.Create(ctx, probe, client.DryRunAll)
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
