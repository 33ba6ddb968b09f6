package chaos

// The kinds of Kubernetes that operators make. A member is a pod, with or without a
// workload that makes it and a volume that outlives it.
var (
	Pod = Object{Kind: "Pod", APIVersion: "v1", Scope: ScopeInstance, Takes: PartPod, Edits: []Edit{
		{Name: "deadline", Patch: `{"spec":{"activeDeadlineSeconds":1}}`, Sentence: "gives %s a deadline of one second, so that it ends as Failed"},
		{Name: "image", Patch: imagePatch, Sentence: "changes the image of %s to one that does not exist"},
	}}
	PersistentVolumeClaim = Object{Kind: "PersistentVolumeClaim", APIVersion: "v1", Scope: ScopeInstance, Takes: PartVolume, Edits: []Edit{
		{Name: "grow", Patch: `{"spec":{"resources":{"requests":{"storage":"9Gi"}}}}`, Sentence: "grows %s by hand"},
		{Name: "annotations", Patch: `{"metadata":{"annotations":null}}`, Sentence: "removes all annotations from %s"},
	}}
	StatefulSet = Object{Kind: "StatefulSet", APIVersion: "apps/v1", Scope: ScopeInstance, Takes: PartPod, Edits: []Edit{
		{Name: "replicas-zero", Patch: `{"spec":{"replicas":0}}`, Sentence: "scales %s to zero"},
		{Name: "replicas-two", Patch: `{"spec":{"replicas":2}}`, Sentence: "scales %s to two"},
		{Name: "image", Patch: templateImagePatch, Sentence: "changes the image of %s to one that does not exist"},
		{Name: "rolling", Patch: `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}}`, Sentence: "makes %s roll by itself"},
		{Name: "node-selector", Patch: templatePatch(`{"spec":{"nodeSelector":{"chaos.governor.dev/none":"true"}}}`), Sentence: "binds %s to a node that does not exist"},
		{Name: "template-labels", Patch: templatePatch(`{"metadata":{"labels":{"chaos.governor.dev/foreign":"true"}}}`), Sentence: "adds a label to the template of %s"},
		{Name: "ordinals", Patch: `{"spec":{"ordinals":{"start":3}}}`, Sentence: "renames the pods of %s by another first ordinal"},
		{Name: "service-account", Patch: templatePatch(`{"spec":{"serviceAccountName":"chaos-none"}}`), Sentence: "binds %s to a ServiceAccount that does not exist"},
		{Name: "sidecar", Patch: sidecarPatch, Sentence: "adds a container to %s whose image does not exist"},
		{Name: "init-container", Patch: initContainerPatch, Sentence: "adds an init container to %s whose image does not exist"},
		{Name: "annotations", Patch: `{"metadata":{"annotations":null}}`, Sentence: "removes all annotations from %s"},
	}}
	Deployment = Object{Kind: "Deployment", APIVersion: "apps/v1", Scope: ScopeInstance, Takes: PartPod, Edits: []Edit{
		{Name: "replicas-zero", Patch: `{"spec":{"replicas":0}}`, Sentence: "scales %s to zero"},
		{Name: "image", Patch: templateImagePatch, Sentence: "changes the image of %s to one that does not exist"},
		{Name: "paused", Patch: `{"spec":{"paused":true}}`, Sentence: "pauses %s"},
	}}
	Service = Object{Kind: "Service", APIVersion: "v1", Scope: ScopeInstance, Edits: []Edit{
		{Name: "selector", Patch: `{"spec":{"selector":{"chaos.governor.dev/none":"true"}}}`, Sentence: "changes the selector of %s so that it selects no pod"},
		{Name: "unready", Patch: `{"spec":{"publishNotReadyAddresses":false}}`, Sentence: "makes %s publish only pods that are ready"},
		{Name: "type", Patch: `{"spec":{"externalTrafficPolicy":null,"type":"ClusterIP","sessionAffinity":"ClientIP"}}`, Sentence: "changes the session affinity of %s"},
		{Name: "annotations", Patch: `{"metadata":{"annotations":{"chaos.governor.dev/foreign":"true"}}}`, Sentence: "adds an annotation to %s"},
	}}
	EndpointSlice = Object{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1", Scope: ScopeInstance, Edits: []Edit{
		{Name: "empty", Patch: `{"endpoints":[]}`, Sentence: "removes all endpoints from %s"},
	}}
	ConfigMap = Object{Kind: "ConfigMap", APIVersion: "v1", Scope: ScopeInstance, Configuration: true, Edits: []Edit{
		{Name: "empty", Patch: `{"data":null}`, Sentence: "removes all data from %s"},
		// An operator does not remove what others add, so nothing would put this back.
		{Name: "foreign-key", Patch: `{"data":{"chaos":"true"}}`, Sentence: "adds a key to %s", Unsafe: true},
		{Name: "immutable", Patch: `{"immutable":true}`, Sentence: "makes %s immutable", Unsafe: true},
	}}
	Secret = Object{Kind: "Secret", APIVersion: "v1", Scope: ScopeInstance, Edits: []Edit{
		{Name: "empty", Patch: `{"data":{"tls.crt":"","tls.key":"","ca.crt":""}}`, Sentence: "empties the certificate, the key and the authority in %s"},
		{Name: "garbage", Patch: `{"data":{"tls.crt":"Z2FyYmFnZQ=="}}`, Sentence: "replaces the certificate in %s by text that is none"},
		{Name: "foreign-key", Patch: `{"data":{"chaos":"dHJ1ZQ=="}}`, Sentence: "adds a key to %s"},
	}}
	PodDisruptionBudget = Object{Kind: "PodDisruptionBudget", APIVersion: "policy/v1", Scope: ScopeInstance, Configuration: true, Edits: []Edit{
		{Name: "none", Patch: `{"spec":{"minAvailable":0}}`, Sentence: "makes %s allow every eviction"},
		{Name: "all", Patch: `{"spec":{"minAvailable":"100%"}}`, Sentence: "makes %s allow no eviction"},
	}}
	NetworkPolicy = Object{Kind: "NetworkPolicy", APIVersion: "networking.k8s.io/v1", Scope: ScopeInstance, Configuration: true, Edits: []Edit{
		{Name: "refuse", Patch: `{"spec":{"ingress":[]}}`, Sentence: "makes %s refuse all ingress", Unsafe: true},
		{Name: "allow", Patch: `{"spec":{"ingress":[{}]}}`, Sentence: "makes %s allow all ingress"},
	}}
	ControllerRevision = Object{Kind: "ControllerRevision", APIVersion: "apps/v1", Scope: ScopeInstance}
	// Lease is the one by which operators elect their leader.
	Lease = Object{Kind: "Lease", APIVersion: "coordination.k8s.io/v1", Scope: ScopeOperator, Edits: []Edit{
		{Name: "holder", Patch: `{"spec":{"holderIdentity":"chaos"}}`, Sentence: "gives %s to a holder that does not exist"},
	}}
)

const (
	imagePatch         = `[{"op":"replace","path":"/spec/containers/0/image","value":"` + missingImage + `"}]`
	templateImagePatch = `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"` + missingImage + `"}]`
	sidecarPatch       = `[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"chaos","image":"` + missingImage + `"}}]`
	initContainerPatch = `[{"op":"add","path":"/spec/template/spec/initContainers","value":[{"name":"chaos","image":"` + missingImage + `"}]}]`
	missingImage       = "chaos.governor.dev/none:none"
)

func templatePatch(template string) string { return `{"spec":{"template":` + template + `}}` }
