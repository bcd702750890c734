// The editor: CodeMirror with a small setup. It is in a shadow root, where its styles need no leave of the page's policy.

import {
  autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, Compartment, completionKeymap, defaultKeymap, drawSelection,
  EditorState, EditorView, HighlightStyle, history, historyKeymap, json, keymap, lineNumbers, setDiagnostics, StreamLanguage,
  syntaxHighlighting, tags,
} from "../vendor/codemirror/codemirror.js";

const THEME = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "14px" },
  "&.cm-focused": { outline: "none" }, // page.css draws it around the editor
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", minHeight: "120px", maxHeight: "360px" },
  ".cm-content": { caretColor: "var(--ink)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--soft)", border: "none" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 22%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", overflow: "hidden" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1px", textUnderlineOffset: "4px" },
  ".cm-lintPoint-error:after": { borderBottomColor: "var(--bad)" },
  ".cm-matchingBracket": { backgroundColor: "var(--code) !important", outline: "1px solid var(--line)" },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.number, color: "var(--gradient)" },
  { tag: [tags.function(tags.variableName), tags.propertyName], color: "var(--value)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.operator, tags.punctuation, tags.bracket], color: "var(--soft)" },
  { tag: [tags.keyword, tags.bool, tags.null], color: "var(--warn)" },
]);

const FORMULAS = StreamLanguage.define({
  name: "expression",
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", '"'] } },
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/#.*/)) return "comment";
    if (stream.match(/"[^"]*"?|'[^']*'?/)) return "string";
    if (stream.match(/(\d[\d_]*(\.\d*)?|\.\d+)([eE][+-]?\d+)?/)) return "number";
    if (stream.match(/(and|or|not|true|false|none)\b/i)) return "keyword";
    if (stream.match(/[A-Za-z_]\w*(?=\s*\()/)) return "variableName.function";
    if (stream.match(/[A-Za-z_]\w*/)) return "variableName";
    stream.next();
    return "operator";
  },
});

/** The editor of expressions and programs. */
export class Editor {
  /**
   * @param {HTMLElement} parent
   * @param {{text: string, language: "expression"|"program", onChange: (text: string) => void, onRun: () => void,
   *   complete: (word: string) => Promise<object[]>}} options -
   *   `complete` gives CodeMirror's completions.
   */
  constructor(parent, { text, language, onChange, onRun, complete }) {
    const root = parent.attachShadow({ mode: "open" });
    this.language = new Compartment();
    this.quiet = false;
    this.view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), THEME,
          syntaxHighlighting(COLOURS), this.language.of(this._language(language, complete)),
          EditorView.contentAttributes.of({ "aria-label": "Expression or program", autocapitalize: "off", spellcheck: "false" }),
          keymap.of([
            { key: "Mod-Enter", run: () => (onRun(), true) },
            ...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap,
          ]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !this.quiet) onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    this.complete = complete;
  }

  _language(language, complete) {
    if (language === "program") return [json(), autocompletion({ override: [] })];
    const source = async (context) => {
      const word = context.matchBefore(/[A-Za-z_]\w*/);
      if (!word || (word.from === word.to && !context.explicit)) return null;
      const options = await complete(word.text);
      if (!context.explicit && options.some(({ label }) => label === word.text)) return null; // the name is complete
      return { from: word.from, options };
    };
    // Enter starts a new line unless an arrow key has chosen an option: what was typed is never replaced unasked.
    const choices = { icons: false, activateOnTypingDelay: 200, selectOnOpen: false, interactionDelay: 0, filterStrict: true };
    return [FORMULAS, EditorView.lineWrapping, autocompletion({ override: [source], ...choices })];
  }

  /** Shows another text, without a call of onChange. */
  set(text, language) {
    this.quiet = true;
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: text },
      effects: this.language.reconfigure(this._language(language, this.complete)),
    });
    this.quiet = false;
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Underlines faults: [{from, to, message}]. */
  mark(faults) {
    const length = this.view.state.doc.length;
    const diagnostics = faults.map(({ from, to, message }) => ({
      from: Math.min(from, length), to: Math.min(Math.max(to, from), length), severity: "error", message,
    }));
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /** Selects a part of the text. */
  select(from, to) {
    this.view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
  }
}
