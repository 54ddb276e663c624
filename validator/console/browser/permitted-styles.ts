/**
 * For a library that inserts style elements and style attributes, which the content security policy forbids: new elements
 * of the document put these styles where the policy permits them, in style sheets and in properties. Returns the function
 * that ends this for later elements.
 */
export function permitStyles(page: Document): () => void {
  const create = page.createElement;
  const createPermitted = (name: string, options?: ElementCreationOptions): HTMLElement => {
    if (name === 'style') return sheetElement(page, create.call(page, 'span'));
    const element = create.call(page, name, options);
    return name === 'span' ? withProperties(element) : element;
  };
  page.createElement = createPermitted;
  return () => {
    if (page.createElement === createPermitted) page.createElement = create;
  };
}

/** An element in place of a style element: its text becomes a style sheet of the page until it is removed. */
function sheetElement(page: Document, element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  element.hidden = true;
  page.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, 'textContent', { set: (css: string) => sheet.replaceSync(css) });
  element.remove = () => {
    page.adoptedStyleSheets = page.adoptedStyleSheets.filter((each) => each !== sheet);
    HTMLElement.prototype.remove.call(element);
  };
  return element;
}

function withProperties(element: HTMLElement): HTMLElement {
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value;
    else HTMLElement.prototype.setAttribute.call(element, name, value);
  };
  return element;
}
