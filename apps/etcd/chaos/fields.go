package chaos

import "github.com/governor-dev/governor/lifecycle/chaos"

// cluster is the custom resource: each field with valid values, values at the limit, and values
// beyond it, which the API server must reject.
var cluster = chaos.Object{
	Kind: "EtcdCluster", APIVersion: "etcd.database.coreos.com/v1", Scope: chaos.ScopeInstance, Custom: true,
	Edits: []chaos.Edit{
		spec("size-1", `{"size":1}`, "scales %s to one"),
		spec("size-2", `{"size":2}`, "scales %s to two"),
		spec("size-3", `{"size":3}`, "scales %s to three"),
		spec("size-4", `{"size":4}`, "scales %s to four"),
		spec("size-5", `{"size":5}`, "scales %s to five"),
		spec("size-0", `{"size":0}`, "scales %s to zero, which is refused"),
		spec("size-10", `{"size":10}`, "scales %s to ten, which is refused"),
		spec("version-next", `{"version":"3.7"}`, "upgrades %s"),
		undone("version-back", `{"version":"3.5"}`, "downgrades %s by a minor release, which is impossible"),
		spec("version-odd", `{"version":"latest"}`, "gives %s an invalid version"),
		spec("annotations", `{"pod":{"annotations":{"chaos.governor.dev/at":"1"}}}`, "adds an annotation to the pods of %s"),
		spec("labels", `{"pod":{"labels":{"chaos.governor.dev/at":"1","etcd.database.coreos.com/member":"etcd-0"}}}`, "adds labels to the pods of %s, one of them the operator's"),
		spec("grace-1", `{"pod":{"terminationGracePeriodSeconds":1}}`, "gives the pods of %s a second to end"),
		spec("env", `{"pod":{"env":[{"name":"ETCD_HEARTBEAT_INTERVAL","value":"150"}]}}`, "sets the environment of %s"),
		spec("args", `{"pod":{"args":["--election-timeout=1500"]}}`, "sets a flag of %s"),
		undone("args-wrong", `{"pod":{"args":["--no-such-flag=1"]}}`, "gives %s a flag that etcd does not know"),
		undone("resources-huge", `{"pod":{"resources":{"requests":{"cpu":"500"}}}}`, "asks for more than a node has for the pods of %s"),
		undone("node-selector", `{"pod":{"nodeSelector":{"chaos.governor.dev/none":"true"}}}`, "binds the pods of %s to a node that does not exist"),
		undone("image", `{"repository":"chaos.governor.dev/none"}`, "takes the images of %s from a registry that does not exist"),
		undone("paused", `{"paused":true}`, "pauses %s"),
		spec("storage-grow", `{"storage":{"size":"2Gi"}}`, "grows the volumes of %s"),
		spec("storage-shrink", `{"storage":{"size":"64Mi"}}`, "shrinks the volumes of %s, which is refused"),
		spec("storage-memory", `{"storage":{"medium":"Memory"}}`, "moves %s into memory, which is refused"),
		spec("retention-delete", `{"storage":{"retention":"Delete"}}`, "gives the volumes of %s to the garbage collector"),
		spec("retention-retain", `{"storage":{"retention":"Retain"}}`, "retains the volumes of %s"),
		spec("tls-other", `{"tls":{"mode":"Secrets","secrets":{"peer":"none"}}}`, "changes the TLS mode of %s, which is refused"),
		undone("quota-least", `{"options":{"quota":"16Mi"}}`, "gives %s the smallest quota"),
		spec("quota-most", `{"options":{"quota":"8Gi"}}`, "gives %s the largest quota"),
		spec("snapshots-1", `{"options":{"snapshotCount":1}}`, "makes %s write a snapshot after every entry"),
		spec("compaction", `{"options":{"compactionMode":"Revision","compactionRetention":"10"}}`, "makes %s compact all but ten revisions"),
		spec("network-policy", `{"networkPolicy":{"enabled":true}}`, "protects %s by a NetworkPolicy"),
		spec("network-policy-off", `{"networkPolicy":null}`, "removes the NetworkPolicy of %s"),
		spec("rebalance", `{"rebalance":"Automatic"}`, "permits the members of %s to move to better nodes"),
		spec("replace-after", `{"replaceAfter":"30s"}`, "makes %s replace silent members soon"),
		spec("domain", `{"clusterDomain":"cluster.local"}`, "adds a cluster domain to %s, which is refused"),
	},
}

// legacy is the custom resource as a client of the older API sees it.
var legacy = chaos.Object{
	Kind: "EtcdCluster", APIVersion: "etcd.database.coreos.com/v1beta2", Scope: chaos.ScopeInstance, Custom: true, Prefix: "legacy-",
	Edits: []chaos.Edit{
		spec("size-1", `{"size":1}`, "scales %s to one, in v1beta2"),
		spec("size-3", `{"size":3}`, "scales %s to three, in v1beta2"),
		spec("size-5", `{"size":5}`, "scales %s to five, in v1beta2"),
		spec("version-next", `{"version":"3.7.3"}`, "upgrades %s, in v1beta2"),
		spec("annotations", `{"pod":{"annotations":{"chaos.governor.dev/at":"2"}}}`, "adds an annotation to the pods of %s, in v1beta2"),
		spec("tls", `{"TLS":{"static":{"member":{"peerSecret":"none"}}}}`, "adds Secrets to %s in v1beta2, which is refused"),
		undone("paused", `{"paused":true}`, "pauses %s, in v1beta2"),
	},
}

func spec(name, patch, sentence string) chaos.Edit {
	return chaos.Edit{Name: name, Patch: `{"spec":` + patch + `}`, Sentence: sentence, Safe: name == "annotations"}
}

// undone is an edit that works only after the user reverts it.
func undone(name, patch, sentence string) chaos.Edit {
	e := spec(name, patch, sentence)
	e.Undone = true
	return e
}
