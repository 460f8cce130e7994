package blockkit

type kind uint8

const (
	kString kind = iota
	kText        // composition object {type, text}
	kArray
	kObject
	kEnum
	kInt
	kBool
	kElement
	kRich // member of a rich_text block
	kAny
)

// field describes one property of an object. min and max bound the length of strings and texts, the
// number of items of arrays and the value of integers; max 0 means unbounded.
type field struct {
	name     string
	kind     kind
	required bool
	min, max int
	plain    bool     // texts: only plain_text
	of       []string // permitted values, member types or the referenced object
}

func (f field) must() field { f.required = true; return f }

func text(name string, max int) field {
	return field{name: name, kind: kText, min: 1, max: max}
}

func plain(name string, max int) field {
	return field{name: name, kind: kText, min: 1, max: max, plain: true}
}

func chars(name string, min, max int) field {
	return field{name: name, kind: kString, min: min, max: max}
}

func integer(name string, min, max int) field {
	return field{name: name, kind: kInt, min: min, max: max}
}

func flag(name string) field { return field{name: name, kind: kBool} }

func ref(name, object string) field {
	return field{name: name, kind: kObject, of: []string{object}}
}

func enum(name string, values ...string) field {
	return field{name: name, kind: kEnum, of: values}
}

func element(name string, types ...string) field {
	return field{name: name, kind: kElement, of: types}
}

// items is an array whose members are elements or composition objects of the listed types.
func items(name string, min, max int, types ...string) field {
	return field{name: name, kind: kArray, min: min, max: max, of: types}
}

func anything(name string) field { return field{name: name, kind: kAny} }

// shape is the set of properties of one type with its cross-field rules.
type shape struct {
	surfaces []Surface // blocks only; nil means everywhere
	fields   []field
	oneOf    []string // at least one must be present
	exactly  []string // exactly one must be present
}

func with(fields ...field) shape { return shape{fields: fields} }

func (s shape) only(on ...Surface) shape      { s.surfaces = on; return s }
func (s shape) anyOf(names ...string) shape   { s.oneOf = names; return s }
func (s shape) oneOnly(names ...string) shape { s.exactly = names; return s }
func (s shape) and(more ...field) shape {
	s.fields = append(append([]field{}, s.fields...), more...)
	return s
}
func interactive(more ...field) shape { return with(chars("action_id", 1, 255)).and(more...) }
func confirmable(more ...field) shape { return interactive(ref("confirm", "confirm")).and(more...) }
func typed(more ...field) shape {
	return interactive(plain("placeholder", 150), flag("focus_on_load")).and(more...)
}
func selectable(more ...field) shape {
	return confirmable(plain("placeholder", 150), flag("focus_on_load")).and(more...)
}
func several(more ...field) shape {
	return selectable(integer("max_selected_items", 1, 0)).and(more...)
}
func entered(more ...field) shape {
	return typed(chars("initial_value", 0, 3000), ref("dispatch_action_config", "dispatch_action_config")).and(more...)
}

// objects are the composition objects and other members that carry no type of their own.
var objects = map[string]shape{
	"option": with(
		text("text", 75).must(), chars("value", 1, 150).must(), text("description", 75), chars("url", 0, 3000)),
	"option_group": with(plain("label", 75).must(), items("options", 1, 100, "option").must()),
	"confirm": with(
		plain("title", 100).must(), text("text", 300).must(), plain("confirm", 30), plain("deny", 30),
		enum("style", "primary", "danger")),
	"dispatch_action_config": with(items("trigger_actions_on", 1, 2)),
	"conversation_filter": with(
		items("include", 1, 4), flag("exclude_external_shared_channels"), flag("exclude_bot_users")).
		anyOf("include", "exclude_external_shared_channels", "exclude_bot_users"),
	"slack_file":      with(chars("id", 1, 0), chars("url", 1, 3000)).oneOnly("id", "url"),
	"feedback_button": with(plain("text", 75).must(), chars("value", 1, 2000).must(), chars("accessibility_label", 0, 75)),
	"column_setting":  with(enum("align", "left", "center", "right"), flag("is_wrapped")),
	"raw_text":        with(chars("text", 1, 0).must()),
	"raw_number":      with(anything("value").must(), chars("text", 1, 0)),
	"url_source":      with(chars("url", 1, 3000).must(), chars("text", 1, 0).must()),
}

// elements are the interactive and picture elements.
var elements = map[string]shape{
	"button": confirmable(
		plain("text", 75).must(), chars("value", 0, 2000), chars("url", 0, 3000), enum("style", "primary", "danger"),
		chars("accessibility_label", 0, 75), items("visible_to_user_ids", 1, 10)),
	"workflow_button": interactive(
		plain("text", 75).must(), enum("style", "primary", "danger"), chars("accessibility_label", 0, 75),
		anything("workflow").must()),
	"checkboxes": confirmable(
		items("options", 1, 10, "option").must(), items("initial_options", 1, 10, "option"), flag("focus_on_load")),
	"radio_buttons": confirmable(
		items("options", 1, 10, "option").must(), ref("initial_option", "option"), flag("focus_on_load")),
	"overflow":       confirmable(items("options", 1, 5, "option").must()),
	"datepicker":     selectable(chars("initial_date", 10, 10)),
	"timepicker":     selectable(chars("initial_time", 5, 5), chars("timezone", 1, 0)),
	"datetimepicker": confirmable(integer("initial_date_time", 0, 9999999999), flag("focus_on_load")),
	"plain_text_input": entered(
		flag("multiline"), integer("min_length", 0, 3000), integer("max_length", 1, 3000)),
	"email_text_input": entered(),
	"url_text_input":   entered(),
	"number_input": entered(
		flag("is_decimal_allowed").must(), chars("min_value", 0, 0), chars("max_value", 0, 0)),
	"rich_text_input": typed(anything("initial_value"), integer("min_lines", 1, 100), integer("max_lines", 1, 100),
		ref("dispatch_action_config", "dispatch_action_config")),
	"file_input": interactive(items("filetypes", 1, 0), integer("max_files", 1, 10)),
	"image": with(
		chars("image_url", 1, 3000), ref("slack_file", "slack_file"), chars("alt_text", 1, 2000).must()).
		oneOnly("image_url", "slack_file"),
	"feedback_buttons": interactive(
		ref("positive_button", "feedback_button").must(), ref("negative_button", "feedback_button").must()),
	"icon_button": confirmable(
		enum("icon", "trash").must(), plain("text", 75).must(), chars("value", 0, 2000),
		chars("accessibility_label", 0, 75), items("visible_to_user_ids", 1, 10)),
	"static_select": selectable(
		items("options", 1, 100, "option"), items("option_groups", 1, 100, "option_group"),
		ref("initial_option", "option")).oneOnly("options", "option_groups"),
	"multi_static_select": several(
		items("options", 1, 100, "option"), items("option_groups", 1, 100, "option_group"),
		items("initial_options", 1, 100, "option")).oneOnly("options", "option_groups"),
	"external_select":       selectable(integer("min_query_length", 0, 0), ref("initial_option", "option")),
	"multi_external_select": several(integer("min_query_length", 0, 0), items("initial_options", 1, 100, "option")),
	"users_select":          selectable(chars("initial_user", 1, 0)),
	"multi_users_select":    several(items("initial_users", 1, 0)),
	"conversations_select": selectable(
		chars("initial_conversation", 1, 0), flag("default_to_current_conversation"), flag("response_url_enabled"),
		ref("filter", "conversation_filter")),
	"multi_conversations_select": several(
		items("initial_conversations", 1, 0), flag("default_to_current_conversation"), ref("filter", "conversation_filter")),
	"channels_select":       selectable(chars("initial_channel", 1, 0), flag("response_url_enabled")),
	"multi_channels_select": several(items("initial_channels", 1, 0)),
}

var selects = []string{
	"static_select", "external_select", "users_select", "conversations_select", "channels_select",
	"multi_static_select", "multi_external_select", "multi_users_select", "multi_conversations_select",
	"multi_channels_select",
}

// blocks are the block types this simulator renders. What is missing here is either received only
// (file) or so new that clients disagree about it; both are refused as unsupported.
var blocks = map[string]shape{
	"actions": with(items("elements", 1, 25, append([]string{
		"button", "workflow_button", "checkboxes", "datepicker", "datetimepicker", "overflow", "radio_buttons",
		"timepicker", "rich_text_input"}, selects...)...).must()),
	"section": with(
		text("text", 3000), items("fields", 1, 10, "text:2000"),
		element("accessory", append([]string{
			"button", "workflow_button", "checkboxes", "datepicker", "image", "overflow", "radio_buttons", "timepicker"},
			selects...)...),
		flag("expand")).anyOf("text", "fields"),
	"header":  with(plain("text", 150).must(), integer("level", 1, 4)),
	"divider": with(),
	"context": with(items("elements", 1, 10, "image", "text:3000").must()),
	"context_actions": with(items("elements", 1, 5, "feedback_buttons", "icon_button").must()).
		only(Message),
	"image": with(
		chars("image_url", 1, 3000), ref("slack_file", "slack_file"), chars("alt_text", 1, 2000).must(),
		plain("title", 2000)).oneOnly("image_url", "slack_file"),
	"input": with(
		plain("label", 2000).must(), plain("hint", 2000), flag("optional"), flag("dispatch_action"),
		element("element", append([]string{
			"checkboxes", "datepicker", "datetimepicker", "email_text_input", "file_input", "number_input",
			"plain_text_input", "radio_buttons", "rich_text_input", "timepicker", "url_text_input"}, selects...)...).must()),
	"markdown":  with(chars("text", 1, 12000).must()).only(Message),
	"rich_text": with(field{name: "elements", kind: kRich, required: true, min: 1}),
	"table": with(
		field{name: "rows", kind: kArray, required: true, min: 1, max: 100, of: []string{"row"}},
		items("column_settings", 1, 20, "column_setting")).only(Message),
	"task_card": with(
		chars("task_id", 1, 0).must(), chars("title", 1, 0).must(),
		enum("status", "pending", "in_progress", "complete", "error"), anything("details"), anything("output"),
		items("sources", 1, 0), flag("hide_title")).only(Message),
	"plan": with(chars("title", 1, 0).must(), items("tasks", 1, 0)).only(Message),
	"video": with(
		chars("video_url", 1, 3000).must(), chars("thumbnail_url", 1, 3000).must(), chars("alt_text", 1, 200).must(),
		plain("title", 199).must(), chars("title_url", 0, 3000), chars("author_name", 0, 49),
		chars("provider_name", 0, 50), chars("provider_icon_url", 0, 3000), plain("description", 200)),
}

// views are the two kinds of view; their blocks are checked separately.
var views = map[Surface]shape{
	Modal: with(
		plain("title", 24).must(), anything("blocks").must(), plain("submit", 24), plain("close", 24),
		chars("private_metadata", 0, 3000), chars("callback_id", 0, 255), chars("external_id", 0, 255),
		flag("clear_on_close"), flag("notify_on_close"), flag("submit_disabled")),
	Home: with(
		anything("blocks").must(), chars("private_metadata", 0, 3000), chars("callback_id", 0, 255),
		chars("external_id", 0, 255)),
}

// surfaceMax is the number of blocks one surface holds.
var surfaceMax = map[Surface]int{Message: 50, Modal: 100, Home: 100}

// richContainers and richInline are the member types of rich_text.
var (
	richContainers = map[string]bool{
		"rich_text_section": true, "rich_text_list": true, "rich_text_quote": true, "rich_text_preformatted": true}
	richInline = map[string]bool{
		"broadcast": true, "color": true, "channel": true, "date": true, "emoji": true, "link": true, "team": true,
		"text": true, "user": true, "usergroup": true}
)
