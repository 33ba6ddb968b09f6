package chaos

import (
	"slices"
	"strings"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// object is one of Governor's own objects, as dist/install.yaml has it.
func object(kind, version string, scope chaos.Scope, names []string, edits ...chaos.Edit) chaos.Object {
	return chaos.Object{Kind: kind, APIVersion: version, Scope: scope, Names: names, Prefix: "operator-", Edits: edits}
}

// policies are the admission policies of Governor.
var policies = []string{
	"governor-approvals", "governor-bypass", "governor-selection", "governor-author", "governor-revisions", "governor-deletions", "governor-bypassed-deletions",
	"governor-unheld-deletions", "governor-retention", "governor-retention-in-time", "governor-uninstall",
}

const (
	rbac      = "rbac.authorization.k8s.io/v1"
	admission = "admissionregistration.k8s.io/v1"
)

// installed are Governor's own objects, with what an administrator edits by mistake.
var installed = []chaos.Object{
	object("Secret", "v1", chaos.ScopeOperator, []string{"governor-webhook-certificate"},
		chaos.Edit{Name: "empty", Patch: `{"data":null}`, Sentence: "removes the certificate of the webhooks from %s"},
		chaos.Edit{Name: "garbage", Patch: `{"data":{"tls.crt":"Z2FyYmFnZQ=="}}`, Sentence: "replaces the certificate of the webhooks in %s by text that is none"}),
	object("CustomResourceDefinition", "apiextensions.k8s.io/v1", chaos.ScopeCluster, []string{"etcdclusters.etcd.database.coreos.com"},
		chaos.Edit{Name: "bundle-none", Patch: `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`, Sentence: "removes the authority from the conversion of %s"},
		chaos.Edit{Name: "bundle-other", Patch: `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"$CA"}}}}}`, Sentence: "gives the conversion of %s another authority"}),
	object("ValidatingWebhookConfiguration", admission, chaos.ScopeCluster, []string{"governor"}, bundles...),
	object("MutatingWebhookConfiguration", admission, chaos.ScopeCluster, []string{"governor"}, bundles...),
	object("ServiceAccount", "v1", chaos.ScopeOperator, []string{"governor"}),
	object("ClusterRole", rbac, chaos.ScopeCluster, []string{"governor"},
		chaos.Edit{Name: "none", Patch: `{"rules":[]}`, Sentence: "takes all rights from %s"},
		chaos.Edit{Name: "read-only", Patch: readOnly, Sentence: "takes the rights from %s to write anything but a status"}),
	object("ClusterRoleBinding", rbac, chaos.ScopeCluster, []string{"governor"},
		chaos.Edit{Name: "empty", Patch: `{"subjects":[]}`, Sentence: "removes the operator from %s"}),
	object("RoleBinding", rbac, chaos.ScopeOperator, []string{"governor"}),
	object("Service", "v1", chaos.ScopeOperator, []string{"governor-webhook"},
		chaos.Edit{Name: "selector", Patch: `{"spec":{"selector":{"chaos.governor.dev/none":"true"}}}`, Sentence: "changes the selector of %s so that it selects no pod"}),
	object("ValidatingAdmissionPolicy", admission, chaos.ScopeCluster, policies),
	object("ValidatingAdmissionPolicyBinding", admission, chaos.ScopeCluster, policies),
	object("Deployment", "apps/v1", chaos.ScopeOperator, []string{"governor"},
		chaos.Edit{Name: "one", Patch: `{"spec":{"replicas":1}}`, Sentence: "scales %s to one"},
		chaos.Edit{Name: "three", Patch: `{"spec":{"replicas":3}}`, Sentence: "scales %s to three"},
		chaos.Edit{Name: "image", Patch: `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"chaos.governor.dev/none:none"}]`, Sentence: "gives %s an image that does not exist"},
		chaos.Edit{Name: "paused", Patch: `{"spec":{"paused":true}}`, Sentence: "pauses %s"}),
}

var bundles = []chaos.Edit{
	{Name: "bundle-none", Patch: `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`, Sentence: "removes the authority from %s"},
	{Name: "bundle-other", Patch: `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"$CA"}]`, Sentence: "gives %s another authority"},
}

// readOnly leaves the operator's rights to see everything, and to say what it cannot do.
const readOnly = `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]},` +
	`{"apiGroups":["etcd.database.coreos.com"],"resources":["etcdclusters/status"],"verbs":["update","patch"]},` +
	`{"apiGroups":["events.k8s.io",""],"resources":["events"],"verbs":["create","patch","update"]},` +
	`{"apiGroups":["authentication.k8s.io"],"resources":["tokenreviews"],"verbs":["create"]},` +
	`{"apiGroups":["authorization.k8s.io"],"resources":["subjectaccessreviews"],"verbs":["create"]}]}`

// installation is what an administrator does to Governor's own objects. Governor puts back only the
// certificate of its webhooks and who trusts it; the administrator installs the rest again. The
// definition of the kind is never deleted: that deletes all instances.
func installation() chaos.Catalogue {
	var all chaos.Catalogue
	for _, o := range installed {
		for _, m := range chaos.Generate(o) {
			cascade := o.Kind == "Deployment" || m.Verb != chaos.VerbDelete || m.Detail == "Background"
			defined := o.Kind == "CustomResourceDefinition" && m.Verb == chaos.VerbDelete
			if m.All || !cascade || defined || m.Verb == chaos.VerbStripOwners || m.Verb == chaos.VerbAddFinalizer {
				continue
			}
			m.Actor, m.Safe, m.Takes = chaos.ActorAdministrator, false, chaos.PartNone
			m.Sentence = strings.Replace(m.Sentence, "The user", "The administrator", 1)
			m.Lasts = !putBack(m)
			all = append(all, m)
		}
	}
	return all
}

// putBack reports whether Governor itself reverts the manipulation.
func putBack(m chaos.Manipulation) bool {
	return m.Object.Kind == "Secret" && m.Verb != chaos.VerbStripLabels || slices.Contains([]string{"bundle-none", "bundle-other"}, m.Detail)
}
