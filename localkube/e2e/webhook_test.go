package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/governor-dev/governor/localkube/pki"
)

// testWebhook puts a real admission webhook into the cluster: the API server must reach a pod through a Service.
func testWebhook(t *testing.T, u user) {
	dir := t.TempDir()
	ca, err := pki.OpenAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, err := ca.Issue("webhook", pki.Identity{User: "webhook", Hosts: []string{"webhook.default.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	u.localkube(t, "image", "build", webhookRecipe(t, dir), "--load")
	u.kubectl(t, "create", "secret", "tls", "webhook", "--cert", certFile, "--key", keyFile)
	caData, err := os.ReadFile(ca.CertFile())
	if err != nil {
		t.Fatal(err)
	}
	u.apply(t, fmt.Sprintf(webhookManifest, base64.StdEncoding.EncodeToString(caData)))
	u.kubectl(t, "rollout", "status", "deployment/webhook", "--timeout=60s")
	eventually(t, 20*time.Second, "the webhook refuses", func() error {
		_, err := u.tryKubectl("create", "configmap", "refused", "--dry-run=server")
		if err != nil && strings.Contains(err.Error(), "the webhook says no") {
			return nil
		}
		return fmt.Errorf("got: %w", err)
	})
	u.kubectl(t, "delete", "validatingwebhookconfiguration/localkube-test", "deployment/webhook")
}

// webhookRecipe builds the webhook's program and writes the recipe of its image.
func webhookRecipe(t *testing.T, dir string) string {
	t.Helper()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "webhook"), "./testdata/webhook")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := command(build); err != nil {
		t.Fatal(err)
	}
	recipe := filepath.Join(dir, "webhook.yaml")
	text := "name: example.com/webhook:v1\nfiles: [{source: webhook, target: /webhook}]\nentrypoint: [/webhook]\n"
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return recipe
}

const webhookManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: webhook}
spec:
  selector: {matchLabels: {app: webhook}}
  template:
    metadata: {labels: {app: webhook}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: webhook
        image: example.com/webhook:v1
        readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
        volumeMounts: [{name: tls, mountPath: /tls}]
      volumes: [{name: tls, secret: {secretName: webhook}}]
---
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec: {selector: {app: webhook}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: localkube-test}
webhooks:
- name: test.localkube.governor.dev
  clientConfig: {service: {name: webhook, namespace: default}, caBundle: %s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  matchConditions: [{name: only-ours, expression: 'object.metadata.name == "refused"'}]
  admissionReviewVersions: [v1]
  sideEffects: None
`
