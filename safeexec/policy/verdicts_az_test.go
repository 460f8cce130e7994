package policy

var azVerdicts = []verdict{}
