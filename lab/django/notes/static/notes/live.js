// Shows notes as they come.
const source = new EventSource('/events/');
source.addEventListener('ready', () => { document.querySelector('#state').textContent = 'listening'; });
source.onmessage = (event) => {
  const item = document.createElement('li');
  item.textContent = JSON.parse(event.data).title;
  document.querySelector('#live').append(item);
};
