package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Memcached is a number of memcached servers of one size, behind one Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=mcd,categories=governor
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Servers that answer and desired servers"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,description="Tag of the servers' image"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`,priority=1,description="Name and port for clients"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.status.image`,priority=1,description="Image of the servers"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters long: Service, Deployment and pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and have only small letters, digits and '-': the Service is named after it"
type Memcached struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +kubebuilder:default={}
	// +optional
	Spec MemcachedSpec `json:"spec,omitempty"`

	// status is the observed state. The operator writes it.
	// +optional
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec is the desired state.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.image) && has(self.version))",message="spec.image and spec.version exclude each other: set version to choose a release, or image to run a build of your own"
// +kubebuilder:validation:XValidation:rule="!(has(self.resources) && has(self.resources.limits) && 'memory' in self.resources.limits)",message="spec.memory sets the memory limit: remove spec.resources.limits.memory"
type MemcachedSpec struct {
	// size is the desired number of memcached servers. With 0, the object and its Service stay and
	// there is no server.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=500
	// +optional
	Size int32 `json:"size"`

	// containerPort is the TCP port on which every server listens.
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ContainerPort int32 `json:"containerPort,omitempty"`

	// version is the release of memcached, such as "1.6.38". Its image is
	// docker.io/library/memcached:<version>. Without version and image, the operator chooses a
	// release when the object is created and keeps it: a new operator does not restart your caches.
	// +kubebuilder:validation:Pattern=`^[0-9]+\.[0-9]+\.[0-9]+$`
	// +kubebuilder:validation:MaxLength=20
	// +optional
	Version string `json:"version,omitempty"`

	// image to run instead of a release; memcached must be on its PATH.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	// +optional
	Image string `json:"image,omitempty"`

	// memory limit of each server's container. Memcached gets it (-m) less a
	// headroom of a quarter, at least 32Mi, for connections and its hash table, so
	// that a full cache evicts instead of being killed.
	// +kubebuilder:default="128Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="spec.memory must be at least 64Mi: 32Mi of it are headroom for connections"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// resources are the requests and further limits of each server's container. The field memory sets
	// the memory limit.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// pod contains settings to add to the pods.
	// +optional
	Pod PodSettings `json:"pod,omitempty"`

	// paused makes the operator only observe: it repairs and changes nothing.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// PodSettings are added to every pod.
type PodSettings struct {
	// labels to add. The labels that the operator sets have precedence.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations to add.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector contains labels that a node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints that the pods tolerate.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// priorityClassName is the name of the pods' priority class.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets are the Secrets with which the kubelet pulls the image.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// MemcachedStatus is the observed state.
type MemcachedStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled as in every kind of Governor; Available: at least
	// one server answers; Degraded: fewer servers answer than desired.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// nodes are the names of the pods, sorted; of more than 500 pods, 500 of them. The total is in
	// replicas.
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// ready is the number of servers that answer and the number of desired servers, such as "2/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that answer.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the pods, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// version is the tag of the image, such as "1.6.38". It is empty if the image has a digest only.
	// +optional
	Version string `json:"version,omitempty"`

	// image that the servers run, or are changing to.
	// +optional
	Image string `json:"image,omitempty"`

	// defaultImage is the image that the operator chose when the object was created, for a spec
	// without version and image. It stays, so that a new operator restarts nothing.
	// +optional
	DefaultImage string `json:"defaultImage,omitempty"`

	// endpoint is the name and port of the Service. The Service is headless: its name resolves to the
	// address of every server that answers, as memcached clients need it.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// StatusFields implements lifecycle.Resource.
func (m *Memcached) StatusFields() (*int64, *[]metav1.Condition) {
	return &m.Status.ObservedGeneration, &m.Status.Conditions
}

// IsPaused reports whether spec.paused is set.
func (m *Memcached) IsPaused() bool { return m.Spec.Paused }

// MemcachedList is a list of memcached instances.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// The instances.
	Items []Memcached `json:"items"`
}
