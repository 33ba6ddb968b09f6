package webhookcert

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// fieldManager is the field manager of the rotator's writes.
const fieldManager = client.FieldOwner("governor-webhook")

// certManagerAnnotations are on objects that cert-manager manages.
var certManagerAnnotations = []string{
	"cert-manager.io/certificate-name", "cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret",
}

func isManagedElsewhere(obj client.Object) bool {
	annotations := obj.GetAnnotations()
	for _, key := range certManagerAnnotations {
		if annotations[key] != "" {
			return true
		}
	}
	return annotations[lifecycle.AnnotationPaused] == "true"
}

func emptySecret(o Options) *corev1.Secret {
	s := &corev1.Secret{Type: corev1.SecretTypeTLS}
	s.Namespace, s.Name = o.Namespace, o.Secret
	return s
}

// observe returns the Secret and the targets as the watches show them. A missing Secret has
// no data. The Secret is nil until its watch has synced.
func (r *Rotator) observe(ctx context.Context) (*corev1.Secret, []observedTarget, error) {
	if !r.secret.isSynced() {
		return nil, nil, nil
	}
	secret := emptySecret(r.options)
	if _, err := r.find(ctx, &r.secret, secret); err != nil {
		return nil, nil, err
	}
	targets, err := r.observeTargets(ctx)
	return secret, targets, err
}

// readSecret reads the Secret from the API server. A missing Secret has no data.
func (r *Rotator) readSecret(ctx context.Context, secret *corev1.Secret) error {
	*secret = *emptySecret(r.options)
	err := r.mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read the Secret %s: %w", r.options.Secret, err)
	}
	return nil
}

// writeSecret writes the data unless another client has written since the read.
func (r *Rotator) writeSecret(ctx context.Context, secret *corev1.Secret, data map[string][]byte) error {
	program := cmp.Or(r.options.Program, "governor")
	wanted := coreapply.Secret(secret.Name, secret.Namespace).WithType(secret.Type).WithData(data).
		WithLabels(map[string]string{lifecycle.LabelName: program, lifecycle.LabelManagedBy: program})
	if secret.ResourceVersion != "" {
		wanted.WithResourceVersion(secret.ResourceVersion)
	}
	if err := r.mgr.GetClient().Apply(ctx, wanted, fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot write the Secret %s: %w", secret.Name, err)
	}
	secret.Data = data
	return nil
}
