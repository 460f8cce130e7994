package azure

import (
	"fmt"
	"slices"

	"ghostbot/safeexec/policy/azure/jmespath"
)

// guard holds back a command whose plain output may carry a secret or has any
// size, although the command itself only reads.
type guard struct {
	reason string
	fields []string // with --query printing only these, the command is SAFE
	table  bool     // with -o table, which prints a few columns, it is SAFE too
}

// deploymentFields of a deployment carry neither parameters nor outputs.
var deploymentFields = []string{"name", "id", "type", "location", "resourceGroup", "provisioningState", "timestamp", "duration", "mode",
	"correlationId", "code", "message", "statusCode", "operationId", "resourceType", "resourceName", "provisioningOperation"}

var (
	deployment = guard{"may print parameters and outputs, which can hold secrets; add --query with the fields you want", deploymentFields, true}
	template   = guard{reason: "prints a template, which can hold secrets"}
	logs       = guard{reason: "prints a log of unknown size and content"}
	content    = guard{reason: "prints stored content"}
	crypto     = guard{reason: "uses a key of a vault"}
)

// circuit fields of an ExpressRoute circuit other than its service key.
var circuit = guard{"prints the circuit's service key; add --query with the fields you want",
	[]string{"name", "id", "type", "location", "resourceGroup", "provisioningState", "serviceProviderProvisioningState", "circuitProvisioningState",
		"bandwidthInMbps", "bandwidthInGbps", "peeringLocation", "serviceProviderName", "tier", "family", "globalReachEnabled",
		"allowClassicOperations", "gatewayManagerEtag", "etag", "stag"}, false}

// anything is a command that shows whatever object an id names: a deployment with
// its outputs, a connection with its shared key.
var anything = guard{"shows any kind of object whole, which can hold secrets; add --query with the fields you want",
	[]string{"name", "id", "type", "kind", "location", "resourceGroup", "provisioningState", "managedBy", "etag"}, true}

var script = guard{"may print a script, its parameters and its output; add --query with the fields you want",
	[]string{"name", "id", "type", "location", "resourceGroup", "provisioningState"}, true}

// guards by command. The ExpressRoute commands stand in the tree as secrets;
// their guard lets a harmless query through.
var guards = map[string]guard{
	"network express-route show": circuit, "network express-route list": circuit,
	"deployment show": deployment, "deployment list": deployment, "deployment group show": deployment, "deployment group list": deployment,
	"deployment sub show": deployment, "deployment sub list": deployment, "deployment mg show": deployment, "deployment mg list": deployment,
	"deployment tenant show": deployment, "deployment tenant list": deployment, "group deployment show": deployment, "group deployment list": deployment,
	"deployment operation list": deployment, "deployment operation show": deployment, "deployment operation group list": deployment,
	"deployment operation group show": deployment, "deployment operation sub list": deployment, "deployment operation sub show": deployment,
	"deployment operation mg list": deployment, "deployment operation mg show": deployment, "deployment operation tenant list": deployment,
	"deployment operation tenant show": deployment, "group deployment operation list": deployment, "group deployment operation show": deployment,
	"deployment export": template, "deployment group export": template, "deployment sub export": template, "deployment mg export": template,
	"deployment tenant export": template, "group deployment export": template, "stack group export": template, "stack sub export": template,
	"stack mg export": template, "group export": template,
	"deployment-scripts show": deployment, "deployment-scripts list": deployment, "deployment-scripts show-log": logs,
	"vm boot-diagnostics get-boot-log": logs, "container logs": logs, "containerapp logs show": logs, "containerapp env logs show": logs,
	"acr task logs": logs, "acr taskrun logs": logs, "webapp sitecontainers log": logs, "webapp log deployment show": logs,
	"functionapp log deployment show": logs, "lab formula export-artifacts": template,
	"storage blob query": content, "storage entity query": content, "storage entity show": content, "storage message peek": content,
	"keyvault key encrypt": crypto, "keyvault key random": crypto, "keyvault key verify": crypto,
	"resource show": anything, "vm run-command show": script, "vm run-command list": script, "vmss run-command show": script, "vmss run-command list": script,
	"bicep version": {reason: "may download a program first"},
}

// guarded applies the guard of a command, when it has one.
func (p *Policy) guarded(name string, o options) *Problem {
	g, ok := p.guards[name]
	if !ok || g.table && o.output == "table" && o.query == "" || g.harmless(o.query) {
		return nil
	}
	return &Problem{"az-output", fmt.Sprintf("az %s %s", name, g.reason)}
}

// harmless reports a query whose result names only fields that are listed.
func (g guard) harmless(query string) bool {
	if query == "" || len(g.fields) == 0 {
		return false
	}
	e, err := jmespath.Parse(query)
	if err != nil || e.Whole || len(e.Outputs) == 0 {
		return false
	}
	for _, f := range e.Outputs {
		if !slices.Contains(g.fields, f) {
			return false
		}
	}
	return true
}
